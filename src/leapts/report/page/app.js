// The state of the page (series, cutoff, tab), and its event handlers.

const state = { series: 0, cutoff: 0, view: "forecasts", query: "", order: "data", step: null };
let modelDrawn = false;

function start() {
  // The page opens on the future, and on the series with most to say.
  state.cutoff = FUTURE;
  state.series = (attention()[0] || [0])[0];
  readAddress();
  const shown = counted(DATA.series.length, "series") + (DATA.leftOut ? ` of ${(DATA.series.length + DATA.leftOut).toLocaleString("en")}` : "");
  byId("about").textContent = `${shown}, ${counted(DATA.h, "step")} ahead from the last ${DATA.lookback}, frequency ${DATA.freq}`;
  byId("foot").textContent = `Written by LeapTS ${DATA.version}. One self-contained file; nothing is loaded from the network.`;
  byId("cutoff").max = String(DATA.afters.length - 1);
  drawLegend();
  listen();
  choose({});
}

function choose(change) {
  Object.assign(state, change);
  if ("series" in change || "cutoff" in change) stopReading();
  byId("forecasts").hidden = state.view !== "forecasts";
  byId("model").hidden = state.view !== "model";
  for (const view of ["forecasts", "model"]) {
    const tab = byId(`tab-${view}`);
    tab.setAttribute("aria-selected", String(state.view === view));
    tab.tabIndex = state.view === view ? 0 : -1;
  }
  if (state.view === "model") {
    if (!modelDrawn) drawModel();
    modelDrawn = true;
  } else drawForecasts();
  keepAddress();
}

function drawForecasts() {
  // A narrow screen shows less history.
  const shown = byId("chart").clientWidth < 560 ? Math.min(SHOWN, Math.ceil(1.5 * DATA.h)) : SHOWN;
  const forecast = forecastOf(state.series, state.cutoff, shown);
  drawSummary();
  drawTitle(forecast);
  drawChart(forecast);
  drawLeaps(forecast);
  findSeries();
  drawLanesHead();
  revealLane();
  drawLanes();
}

const KINDS = {
  future: ["", "future"],
  new: ["good", "new to the model"],
  "held out": ["", "held out of training"],
  training: ["warn", "in the training data"],
};

function drawTitle(forecast) {
  const series = DATA.series[state.series];
  const after = DATA.afters[state.cutoff];
  byId("series-name").textContent = series.name;
  byId("cutoff").value = String(state.cutoff);
  byId("earlier").disabled = state.cutoff === 0;
  byId("later").disabled = state.cutoff === DATA.afters.length - 1;
  const timestamps = timestampsOf(series.clock);
  const timestamp = timestamps[timestamps.length - DATA.h - after - 1]; // undefined if the series begins after the cutoff
  const cutoff = timestamp === undefined ? "\u2013" : timestampText(timestamp);
  byId("cutoff").setAttribute("aria-valuetext", `cutoff ${cutoff}`);
  const [kind, text] = KINDS[kindOf(series, state.cutoff)];
  const tag = timestamp === undefined ? null : element("span", { class: `tag ${kind}` }, text);
  byId("cutoff-label").replaceChildren("cutoff ", element("b", {}, cutoff), " ", ...(tag ? [tag] : []));
  byId("series-about").textContent = forecast ? inWords(forecast).slice(series.name.length + 2) : "";
  const facts = [];
  if (forecast && forecast.actual.length) {
    const off = (values) => mean(forecast.actual.map((actual, i) => Math.abs(actual - values[i])));
    facts.push(fact("mean absolute error", valueText(series, off(forecast.final)), forecast.coarse && `coarse ${valueText(series, off(forecast.coarse))}`));
    const wide = forecast.bands[forecast.bands.length - 1];
    if (wide) {
      const inside = mean(forecast.actual.map((actual, i) => Number(wide.lower[i] <= actual && actual <= wide.upper[i])));
      facts.push(fact(`inside ${wide.level} %`, percent(inside)));
    }
  }
  if (forecast && forecast.leaps.length) facts.push(fact("leaps", String(forecast.leaps.length)));
  byId("facts").replaceChildren(...facts);
  if (forecast) byId("spoken").textContent = `${inWords(forecast)}, cutoff ${cutoff}`;
}

function fact(name, value, note) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, value, note ? " " : null, note ? element("small", {}, note) : null));
}

function move(what, by) {
  if (what === "cutoff") {
    choose({ cutoff: Math.max(0, Math.min(DATA.afters.length - 1, state.cutoff + by)) });
  } else if (order.length) {
    const place = order.indexOf(state.series);
    choose({ series: order[place < 0 ? 0 : Math.max(0, Math.min(order.length - 1, place + by))] });
  }
}

function readAlong(by) {
  if (!drawn) return;
  const past = drawn.forecast.past.length;
  const step = state.step === null ? 0 : state.step + by;
  byId("spoken").textContent = readOff(Math.max(-past, Math.min(DATA.h - 1, step)));
}

function listen() {
  byId("cutoff").addEventListener("input", (event) => choose({ cutoff: Number(event.target.value) }));
  byId("earlier").addEventListener("click", () => move("cutoff", -1));
  byId("later").addEventListener("click", () => move("cutoff", 1));
  byId("order").addEventListener("change", (event) => choose({ order: event.target.value }));
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("lanes").addEventListener("scroll", drawLanes, { passive: true });
  for (const view of ["forecasts", "model"]) byId(`tab-${view}`).addEventListener("click", () => choose({ view }));
  byId("theme").addEventListener("click", switchTheme);
  byId("csv").addEventListener("click", downloadCsv);
  byId("copy").addEventListener("click", copyTable);
  byId("help").addEventListener("click", () => byId("keys").showModal());
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", () => { readAddress(); choose({}); });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
  dark.addEventListener("change", follow);
  follow();
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.round(entry.contentRect.width) === width) return;
    width = Math.round(entry.contentRect.width);
    if (width) drawForecasts();
  }).observe(byId("chart"));
}

function search(query) {
  state.query = query;
  findSeries();
  byId("lanes").scrollTop = 0;
  // Select the first match, unless the current series is a match.
  choose(order.length && !order.includes(state.series) ? { series: order[0] } : {});
}

function switchTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
}

function onKey(event) {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const typing = target.id === "search" || target.tagName === "SELECT";
  if (key === "Escape") {
    stopReading();
    if (target.id === "search") { target.value = ""; search(""); target.blur(); }
    return;
  }
  if (target.getAttribute("role") === "tab" && (key === "ArrowLeft" || key === "ArrowRight")) {
    choose({ view: state.view === "model" ? "forecasts" : "model" });
    byId(`tab-${state.view}`).focus();
  } else if (!typing && key === "m") choose({ view: state.view === "model" ? "forecasts" : "model" });
  else if (!typing && key === "t") switchTheme();
  else if (!typing && key === "?") byId("keys").showModal();
  else if (state.view !== "forecasts" || target.tagName === "SELECT") return;
  else if (!typing && key === "/") byId("search").focus();
  else if (key === "ArrowUp" || key === "ArrowDown") move("series", key === "ArrowUp" ? -1 : 1);
  else if (!typing && (key === "ArrowLeft" || key === "ArrowRight")) {
    const by = key === "ArrowLeft" ? -1 : 1;
    if (event.shiftKey) readAlong(by);
    else move("cutoff", by);
  } else return;
  event.preventDefault();
}

// The address holds the state, so that a link opens the same view.
let keeping = 0;
function keepAddress() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    const address = state.view === "model" ? "#page=model" : `#series=${state.series}&cutoff=${state.cutoff}`;
    if (location.hash !== address) history.replaceState(null, "", address);
  }, 250);
}
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("page") || given.has("series")) state.view = given.get("page") === "model" ? "model" : "forecasts";
  for (const [name, count] of [["series", DATA.series.length], ["cutoff", DATA.afters.length]]) {
    const value = Number(given.get(name) ?? NaN);
    if (Number.isInteger(value) && value >= 0 && value < count) state[name] = value;
  }
}

start();
