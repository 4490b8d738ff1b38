// The list of series: one lane each, with its schedule. Only visible lanes are drawn.

const LANE = 30;
let order = []; // the series that match the search, in the selected order

function findSeries() {
  const wanted = state.query.trim().toLocaleLowerCase();
  order = DATA.series.flatMap((series, i) => (series.name.toLocaleLowerCase().includes(wanted) ? [i] : []));
  const key = {
    error: (i) => DATA.series[i].error[state.cutoff] ?? -1,
    leaps: (i) => (DATA.series[i].leaps[state.cutoff] || "").split(";").length,
  }[state.order];
  if (key) {
    const keys = new Map(order.map((i) => [i, key(i)]));
    order.sort((a, b) => keys.get(b) - keys.get(a) || a - b);
  }
}

function drawLanes() {
  const holder = byId("lanes");
  let space = holder.firstElementChild;
  if (!space || !space.classList.contains("lanes-space")) {
    space = element("div", { class: "lanes-space" });
    holder.replaceChildren(space);
  }
  space.style.height = `${Math.max(order.length, 1) * LANE}px`;
  if (!order.length) {
    space.replaceChildren(element("p", { class: "none" }, "No series of that name."));
    holder.removeAttribute("aria-activedescendant");
    return;
  }
  const first = Math.max(0, Math.floor(holder.scrollTop / LANE) - 3);
  const last = Math.min(order.length, Math.ceil((holder.scrollTop + (holder.clientHeight || 400)) / LANE) + 3);
  const bars = Math.max(60, holder.clientWidth - (holder.clientWidth < 500 ? 170 : 252));
  space.replaceChildren(...order.slice(first, last).map((i, n) => lane(i, first + n, bars)));
  if (order.includes(state.series)) holder.setAttribute("aria-activedescendant", `lane-${state.series}`);
  else holder.removeAttribute("aria-activedescendant");
}

function lane(index, place, room) {
  const series = DATA.series[index];
  const leaps = leapsOf(series, state.cutoff);
  const bar = element("span", { class: "lane-bar" }, ...leaps.map((leap) => {
    const wide = (leap.length / DATA.h) * room > 12 + 6 * String(leap.length).length;
    const block = element("span", { class: `scale-${leap.scale}` }, wide ? String(leap.length) : "");
    block.style.flexGrow = String(leap.length);
    return block;
  }));
  const error = series.error[state.cutoff];
  const told = leaps.map((leap) => `${leap.scale} ${leap.length}`).join(", ") || "no leaps";
  const row = element("div", {
    class: "lane", role: "option", id: `lane-${index}`, "aria-selected": String(index === state.series),
    "aria-label": `${series.name}: ${told}${error === null ? "" : `, mean absolute error ${error} standard deviations`}`,
    "aria-setsize": order.length, "aria-posinset": place + 1, title: series.name,
  },
  element("span", { class: "lane-name" }, series.name), bar,
  element("span", { class: "lane-error" }, error === null ? "" : error.toFixed(2)));
  row.style.top = `${place * LANE}px`;
  row.addEventListener("click", () => choose({ series: index }));
  return row;
}

function drawLanesHead() {
  const totals = { short: 0, mid: 0, long: 0 };
  let leaps = 0;
  for (const i of order) {
    for (const leap of leapsOf(DATA.series[i], state.cutoff)) {
      totals[leap.scale] += 1;
      leaps += 1;
    }
  }
  const shares = SCALES.filter((scale) => totals[scale]).map((scale) => `${percent(totals[scale] / leaps)} ${scale}`);
  const found = order.length === DATA.series.length ? counted(order.length, "series") : `${order.length.toLocaleString("en")} of ${counted(DATA.series.length, "series")}`;
  byId("lanes-about").textContent = leaps ? `${found}, ${counted(leaps, "leap")} from this cutoff: ${shares.join(", ")}` : found;
  const known = DATA.afters[state.cutoff] > 0;
  const label = element("span", { class: "lane-error" }, known ? "error" : "");
  label.title = "Mean absolute error from this cutoff, in standard deviations of the series";
  byId("lanes-axis").replaceChildren(
    element("span", {}, "step"),
    element("span", { class: "ticks" }, ...[1, Math.round(DATA.h / 2), DATA.h].map((step) => element("span", {}, String(step)))),
    label,
  );
}

// Scroll the selected lane into view, by the smallest distance.
function revealLane() {
  const holder = byId("lanes");
  const top = order.indexOf(state.series) * LANE;
  if (top < 0) return;
  if (top < holder.scrollTop) holder.scrollTop = top;
  else if (top + LANE > holder.scrollTop + holder.clientHeight) holder.scrollTop = top + LANE - holder.clientHeight;
}
