// Create elements, scales and ticks. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}
function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}
function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const byId = (id) => document.getElementById(id);
const pairs = (list) => list.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);

const scaleFrom = (low, high, start, end) => (value) => start + ((value - low) / (high - low || 1)) * (end - start);
const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
const line = (points, kind) => shape("path", { d: path(points), class: `line ${kind}` });

function niceTicks(low, high, wanted) {
  const rough = (high - low) / wanted || 1;
  const size = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((candidate) => candidate >= rough * 0.999);
  const ticks = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) ticks.push(n * step);
  return { ticks, digits: -Math.floor(Math.log10(step) + 1e-9) };
}

// Ticks are at least 10^-digits apart. Abbreviated (1.2M) unless two labels would be equal.
function tickText(value, digits) {
  const size = Math.abs(value);
  const unit = size >= 1e12 ? 12 : size >= 1e9 ? 9 : size >= 1e6 ? 6 : 3;
  if (size < 1e5 || unit + digits > 2) return formatted(value, Math.max(digits, 0));
  return value.toLocaleString("en", { notation: "compact", maximumFractionDigits: Math.max(unit + digits, 0) });
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
// Units of time from coarse to fine, with the label of a tick.
const CALENDAR = [
  [10, "year"], [5, "year"], [2, "year"], [1, "year"], [6, "month"], [3, "month"], [1, "month"],
  [14, "day"], [7, "day"], [2, "day"], [1, "day"], [12, "hour"], [6, "hour"], [3, "hour"], [1, "hour"],
  [30, "minute"], [15, "minute"], [5, "minute"], [1, "minute"],
];
function period(date, every, unit) {
  const day = Math.floor(date / 86400000);
  if (unit === "year") return Math.floor(date.getUTCFullYear() / every);
  if (unit === "month") return Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / every);
  if (unit === "day") return Math.floor((day + 3) / every); // weeks start on Monday
  return Math.floor(date / ((unit === "hour" ? 3600000 : 60000) * every));
}

// Place ticks at the first timestamp of each year, month, day ..., with labels.
function timeTicks(timestamps, most) {
  if (!DATA.dates) {
    const { ticks } = niceTicks(timestamps[0], timestamps[timestamps.length - 1], most);
    const whole = ticks.filter((tick) => Number.isInteger(tick));
    return whole.map((tick) => [timestamps.findIndex((timestamp) => timestamp >= tick), String(tick)]).filter(([at]) => at >= 0);
  }
  let best = [];
  let unitOf = "year";
  for (const [every, unit] of CALENDAR) {
    const found = [];
    for (let i = 1; i < timestamps.length; i++) {
      if (period(new Date(timestamps[i]), every, unit) !== period(new Date(timestamps[i - 1]), every, unit)) found.push(i);
    }
    if (found.length > most) break;
    if (found.length > best.length) [best, unitOf] = [found, unit];
  }
  return best.map((at, i) => [at, tickLabel(timestamps[at], unitOf, i && timestamps[best[i - 1]])]);
}
function tickLabel(timestamp, unit, before) {
  const date = new Date(timestamp);
  const year = date.getUTCFullYear();
  if (unit === "year") return String(year);
  if (unit === "month") {
    const isNew = !before || new Date(before).getUTCFullYear() !== year;
    return `${MONTHS[date.getUTCMonth()]}${isNew ? " " + year : ""}`;
  }
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  if (unit === "day" || timestamp % 86400000 === 0) return day;
  return `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
}

// Width of the value labels on the left.
function roomForValues(low, high, height, least, text = tickText) {
  const { ticks, digits } = niceTicks(low, high, height < 200 ? 4 : 6);
  return Math.max(least, 14 + 6.6 * Math.max(...ticks.map((tick) => text(tick, digits).length)));
}

// Draw grid lines and value labels.
function valueAxis(svg, y, low, high, area, text = tickText) {
  const { ticks, digits } = niceTicks(low, high, area.height < 200 ? 4 : 6);
  for (const tick of ticks) {
    svg.append(
      shape("line", { class: "grid", x1: area.left, x2: area.right, y1: y(tick), y2: y(tick) }),
      shape("text", { x: area.left - 8, y: y(tick) + 4, "text-anchor": "end" }, text(tick, digits)),
    );
  }
}

// Draw a small line chart with a tooltip.
function lineChart({ title, lines, x, yText = tickText, floor = null, ceiling = null, aims = [], mark = null, height = 230 }) {
  const holder = element("div", { class: "plot" });
  const every = lines.flatMap((one) => one.points);
  const xs = every.map(([at]) => at);
  const ys = [...every.map(([, value]) => value), ...aims.map((aim) => aim.value)];
  let [low, high] = [Math.min(...ys), Math.max(...ys)];
  const room = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  low = floor !== null ? Math.min(floor, low) : low - room;
  high = ceiling !== null ? Math.max(ceiling, high) : high + room;
  const draw = () => {
    const width = holder.clientWidth || 500;
    const area = { left: roomForValues(low, high, height - 50, 50, yText), right: width - 12, top: 10, bottom: height - 40, height: height - 50 };
    const toX = scaleFrom(Math.min(...xs), Math.max(...xs), area.left, area.right);
    const toY = scaleFrom(low, high, area.bottom, area.top);
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": title });
    valueAxis(svg, toY, low, high, area, yText);
    for (const tick of niceTicks(Math.min(...xs), Math.max(...xs), Math.max(2, Math.floor(width / 90))).ticks) {
      if (!Number.isInteger(tick)) continue;
      svg.append(shape("text", { x: toX(tick), y: area.bottom + 17, "text-anchor": "middle" }, tickText(tick, 0)));
    }
    svg.append(
      shape("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }),
      shape("text", { x: (area.left + area.right) / 2, y: height - 4, "text-anchor": "middle" }, x),
    );
    for (const aim of aims) svg.append(line([[area.left, toY(aim.value)], [area.right, toY(aim.value)]], `${aim.kind} aim`));
    if (mark) {
      svg.append(shape("line", { class: "cursor", x1: toX(mark.at), x2: toX(mark.at), y1: area.top, y2: area.bottom }));
      const onRight = toX(mark.at) < width * 0.7;
      svg.append(shape("text", { x: toX(mark.at) + (onRight ? 6 : -6), y: area.top + 11, "text-anchor": onRight ? "start" : "end" }, mark.text));
    }
    for (const one of lines) {
      svg.append(line(one.points.map(([at, value]) => [toX(at), toY(value)]), one.kind));
      if (one.points.length === 1) svg.append(shape("circle", { class: one.fill, cx: toX(one.points[0][0]), cy: toY(one.points[0][1]), r: 3.5 }));
    }
    const cursor = shape("line", { class: "cursor", y1: area.top, y2: area.bottom, visibility: "hidden" });
    svg.append(cursor);
    svg.addEventListener("pointermove", (event) => {
      const place = event.clientX - svg.getBoundingClientRect().left;
      const nearest = [...new Set(xs)].reduce((a, b) => (Math.abs(toX(b) - place) < Math.abs(toX(a) - place) ? b : a));
      filled(cursor, { x1: toX(nearest), x2: toX(nearest), visibility: "visible" }, []);
      const read = lines.map((one) => [one.name, one.points.find(([at]) => at === nearest)]).filter(([, point]) => point);
      showTip(event, [element("h3", {}, `${x} ${nearest.toLocaleString("en")}`), element("dl", { class: "pairs" },
        ...pairs(read.map(([name, point]) => [name, yText(point[1], 4)])))]);
    });
    svg.addEventListener("pointerleave", () => { hideTip(); cursor.setAttribute("visibility", "hidden"); });
    holder.replaceChildren(svg);
  };
  new ResizeObserver(draw).observe(holder);
  const keys = lines.map((one) => legendItem(one.name, line([[1, 6], [21, 6]], one.kind)));
  return [holder, element("ul", { class: "legend plot" }, ...keys)];
}

function legendItem(text, ...marks) {
  return element("li", {}, shape("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, ...marks), text);
}

// Place the tooltip beside the pointer, or left of it if there is no room.
function showTip(event, children, leftOf = null) {
  const tip = byId("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const view = document.documentElement.clientWidth;
  let left = event.clientX + 18;
  if (left + width > view - 8) left = event.clientX - width - 18;
  if (leftOf !== null && leftOf - width - 12 > 8) left = leftOf - width - 12;
  if (left < 8) left = Math.max(8, Math.min(view - width - 8, event.clientX - width / 2));
  const top = Math.max(8, Math.min(event.clientY - height / 2, window.innerHeight - height - 8));
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${top + window.scrollY}px`;
}
function hideTip() {
  byId("tip").hidden = true;
}
