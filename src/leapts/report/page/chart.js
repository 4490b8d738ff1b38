// The chart of one forecast: history, actuals, coarse and final forecast, intervals, and every leap as a block.

const TAB = 20; // height of the row of leap names
let drawn = null; // the current chart, for the tooltip

function drawChart(forecast) {
  const holder = byId("chart");
  drawn = null;
  if (forecast === null) {
    holder.replaceChildren(element("p", { class: "none" }, "This series has too little history for a forecast from this cutoff."));
    return;
  }
  const width = holder.clientWidth || 900;
  const height = width < 560 ? 320 : 400;
  const { past, final, timestamps } = forecast;
  const every = [...past, ...forecast.actual, ...final, ...(forecast.coarse || [])];
  for (const band of forecast.bands) every.push(...band.lower, ...band.upper);
  let [low, high] = [Math.min(...every), Math.max(...every)];
  const room = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  [low, high] = [low - room, high + room];

  const left = roomForValues(low, high, height - 60, width < 560 ? 44 : 58);
  const area = { left, right: width - 8, top: TAB + 8, bottom: height - 30, height: height - 60 };
  const toX = scaleFrom(0, timestamps.length - 0.5, area.left, area.right);
  const toY = scaleFrom(low, high, area.bottom, area.top);
  const edge = (step) => toX(past.length + step - 0.5);
  const points = (values, from) => values.map((value, i) => [toX(from + i), toY(value)]);
  // An interval of a single step is drawn as wide as the step.
  const ahead = (values) => (values.length > 1 ? points(values, past.length) : [[edge(0), toY(values[0])], [area.right, toY(values[0])]]);

  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": inWords(forecast) });
  valueAxis(svg, toY, low, high, area);
  const blocks = forecast.leaps.map((leap) => {
    const [left, right] = [edge(leap.start), Math.min(edge(leap.end), area.right)];
    const kind = `scale-${leap.scale}`;
    const block = shape("rect", { class: `block ${kind}`, x: left, y: area.top, width: right - left, height: area.bottom - area.top });
    svg.append(block);
    if (leap.number) svg.append(shape("line", { class: `edge ${kind}`, x1: left, x2: left, y1: area.top, y2: area.bottom }));
    svg.append(shape("rect", { class: `tab ${kind}`, x: left + 1, y: 2, width: Math.max(right - left - 2, 1), height: TAB, rx: 4 }));
    const label = [`${leap.scale} ${leap.length}`, String(leap.length)].find((text) => text.length * 6.8 + 8 < right - left);
    if (label) {
      const g = shape("g", { class: kind }, shape("text", { class: "tab-text", x: (left + right) / 2, y: 16, "text-anchor": "middle" }, label));
      svg.append(g);
    }
    return block;
  });
  timeAxis(svg, timestamps, toX, area, width);

  for (const band of [...forecast.bands].reverse()) {
    svg.append(shape("path", { class: "band", d: `${path([...ahead(band.upper), ...ahead(band.lower).reverse()])}Z` }));
  }
  svg.append(shape("line", { class: "now", x1: edge(0), x2: edge(0), y1: area.top - (blocks.length ? 0 : 12), y2: area.bottom }));
  svg.append(line(points(past, 0), "observed"));
  if (forecast.coarse) svg.append(line(ahead(forecast.coarse), "coarse"));
  const last = past.length - 1;
  svg.append(line([[toX(last), toY(past[last])], [toX(last + 1), toY(final[0])]], "link"));
  const whole = points(final, past.length);
  svg.append(line(ahead(final), "halo"));
  const pieces = forecast.leaps.length ? forecast.leaps : [{ start: 0, end: final.length, scale: null }];
  for (const leap of pieces) {
    const piece = whole.length > 1 ? whole.slice(leap.start, leap.end) : ahead(final);
    // Extended half a step to each side, so that the pieces meet at the edges of the blocks.
    if (leap.start > 0) piece.unshift(halfway(whole[leap.start - 1], whole[leap.start]));
    if (leap.end < whole.length) piece.push(halfway(whole[leap.end - 1], whole[leap.end]));
    svg.append(line(piece, `final ${leap.scale ? "scale-" + leap.scale : ""}`));
  }
  if (forecast.actual.length) {
    svg.append(line([[toX(last), toY(past[last])], ...points(forecast.actual, past.length)], "actual"));
  }

  const cursor = shape("g", { visibility: "hidden" });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const place = event.clientX - svg.getBoundingClientRect().left;
    const step = Math.round(((place - area.left) / (area.right - area.left)) * (timestamps.length - 0.5));
    readOff(Math.max(0, Math.min(timestamps.length - 1, step)) - past.length, event);
  });
  svg.addEventListener("pointerleave", stopReading);
  holder.replaceChildren(svg);
  drawn = { forecast, svg, cursor, blocks, toX, toY, area };
}

const halfway = (a, b) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];

function timeAxis(svg, timestamps, toX, area, width) {
  svg.append(shape("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }));
  for (const [at, text] of timeTicks(timestamps, Math.max(3, Math.floor(width / 88)))) {
    const x = toX(at);
    if (x > area.right - 14) continue;
    svg.append(
      shape("line", { class: "axis", x1: x, x2: x, y1: area.bottom, y2: area.bottom + 5 }),
      shape("text", { x: Math.max(x, area.left + 8), y: area.bottom + 20, "text-anchor": "middle" }, text),
    );
  }
}

function inWords(forecast) {
  const leaps = forecast.leaps.map((leap) => `${leap.scale} ${leap.length}`);
  const how = leaps.length ? ` in ${counted(leaps.length, "leap")}: ${leaps.join(", ")}` : "";
  return `${forecast.series.name}, ${counted(forecast.final.length, "step")} ahead${how}`;
}

// Show the tooltip of a step: 0 is the first of the forecast, -1 the last of the history.
function readOff(step, event) {
  const { forecast, svg, cursor, blocks, toX, toY, area } = drawn;
  const { series, past } = forecast;
  const place = past.length + step;
  const x = toX(place);
  cursor.replaceChildren(shape("line", { class: "cursor", x1: x, x2: x, y1: area.top, y2: area.bottom }));
  const dot = (value, style) => cursor.append(shape("circle", { class: `dot ${style}`, cx: x, cy: toY(value), r: 4.5 }));
  const leap = step < 0 ? null : forecast.leaps.find((one) => step < one.end);
  const rows = [];
  if (step < 0) {
    rows.push(["observed", valueText(series, past[place])]);
    dot(past[place], "f1");
  } else {
    const value = forecast.final[step];
    rows.push(["forecast", valueText(series, value)]);
    for (const band of forecast.bands) {
      rows.push([`${band.level} % interval`, `${valueText(series, band.lower[step])} to ${valueText(series, band.upper[step])}`]);
    }
    if (forecast.coarse) rows.push(["coarse", valueText(series, forecast.coarse[step])]);
    if (step < forecast.actual.length) {
      rows.push(["observed", valueText(series, forecast.actual[step])]);
      rows.push(["off by", valueText(series, Math.abs(value - forecast.actual[step]))]);
      dot(forecast.actual[step], "f1");
    }
    dot(value, leap ? `scale-${leap.scale}` : "f0");
  }
  cursor.setAttribute("visibility", "visible");
  const title = timestampText(forecast.timestamps[place]) + (step < 0 ? "" : `, step ${step + 1} of ${DATA.h}`);
  const children = [element("h3", {}, title), element("dl", { class: "pairs" }, ...pairs(rows))];
  if (leap) children.push(...leapReading(leap));
  light(leap ? leap.number : -1, blocks);
  const box = svg.getBoundingClientRect();
  // Placed over the history, so that it does not cover the forecast.
  const away = step < 0 ? null : box.left + toX(past.length - 0.5);
  showTip(event || { clientX: box.left + x, clientY: box.top + box.height / 2 }, children, away);
  state.step = step;
  return `${title}: ${rows.map((row) => row.join(" ")).join(", ")}${leap ? `, ${leap.scale} leap of ${leap.length}` : ""}`;
}

function leapReading(leap) {
  const rows = [
    ["steps", `${leap.start + 1} to ${leap.end}`],
    ["length", String(leap.length)],
    ...SCALES.map((scale, i) => [`probability of ${scale}`, percent(leap.chances[i], 1)]),
    ["control share", percent(leap.control, 1)],
    ["temporal share", percent(leap.temporal, 1)],
    ["gate", DATA.gate.toFixed(3)],
  ];
  return [
    element("h3", { class: `scaled scale-${leap.scale}` }, element("span", { class: "swatch" }), `Leap ${leap.number + 1}: ${leap.scale}`),
    element("dl", { class: "pairs" }, ...pairs(rows)),
  ];
}

function stopReading() {
  hideTip();
  state.step = null;
  if (drawn) {
    drawn.cursor.setAttribute("visibility", "hidden");
    light(-1, drawn.blocks);
  }
}

function light(number, blocks) {
  blocks.forEach((block, i) => block.classList.toggle("lit", i === number));
  document.querySelectorAll(".leap").forEach((leap, i) => leap.classList.toggle("lit", i === number));
}

// The list of leaps below the chart.
function drawLeaps(forecast) {
  const about = byId("leaps-about");
  const list = byId("leaps");
  if (DATA.gate === null) {
    about.textContent = "This model has no scheduling branch: it makes the whole forecast at once, without leaps.";
    list.replaceChildren();
    return;
  }
  about.textContent = `The model makes a coarse forecast of the whole horizon, and then corrects it leap by leap; the correction is weighted by the gate, ${DATA.gate.toFixed(3)}. In each box, the upper bar shows the probability of each scale, the lower bar what changed the state after the leap: the control signal or elapsed time.`;
  list.replaceChildren(...(forecast ? forecast.leaps : []).map(leapCard));
}

function leapCard(leap) {
  const chances = SCALES.map((scale, i) => `${percent(leap.chances[i], 1)} ${scale}`).join(", ");
  const longest = DATA.longest[SCALES.indexOf(leap.scale)];
  const card = element("li", { class: `leap scale-${leap.scale}`, tabindex: "0" },
    element("div", { class: "leap-head" },
      element("b", {}, `Leap ${leap.number + 1}: ${leap.scale}, length ${leap.length}`),
      element("span", { class: "muted" }, leap.length === 1 ? `step ${leap.end}` : `steps ${leap.start + 1}\u2013${leap.end}`)),
    meter(SCALES.map((scale, i) => [`scale-${scale}`, leap.chances[i]])),
    element("p", {}, chances),
    meter([["control", leap.control], ["temporal", leap.temporal]]),
    element("p", {}, `${percent(leap.control, 1)} control, ${percent(leap.temporal, 1)} temporal`),
    leap.length > longest ? element("p", { class: "muted" }, `The last leap allowed covers all remaining steps; other ${leap.scale} leaps have at most ${longest} steps.`) : null);
  const on = () => drawn && light(leap.number, drawn.blocks);
  const off = () => drawn && light(-1, drawn.blocks);
  card.addEventListener("pointerenter", on);
  card.addEventListener("focus", on);
  card.addEventListener("pointerleave", off);
  card.addEventListener("blur", off);
  return card;
}

function meter(parts) {
  const bars = parts.filter(([, share]) => share > 0).map(([kind, share]) => {
    const bar = element("i", { class: kind });
    bar.style.width = `${100 * share}%`;
    return bar;
  });
  return element("span", { class: "meter", "aria-hidden": "true" }, ...bars);
}

function drawLegend() {
  const band = (i) => shape("rect", { class: "band", width: 22, height: 12, rx: 2, opacity: 1 }, i);
  const entries = [legendItem("observed", line([[1, 6], [21, 6]], "observed"))];
  if (DATA.gate === null) entries.push(legendItem("forecast", line([[1, 6], [21, 6]], "final")));
  else {
    const taken = DATA.model.schedules ? SCALES.filter((scale, i) => DATA.model.schedules.leaps[i]) : SCALES;
    for (const scale of taken) entries.push(legendItem(`forecast, ${scale} leap`, line([[1, 6], [21, 6]], `final scale-${scale}`)));
    entries.push(legendItem("coarse forecast", line([[0, 6], [22, 6]], "coarse")));
  }
  DATA.levels.forEach((level, i) => {
    const inner = DATA.levels.length - i;
    entries.push(legendItem(`${level} % interval`, ...Array.from({ length: inner }, () => band())));
  });
  byId("legend").replaceChildren(...entries);
}
