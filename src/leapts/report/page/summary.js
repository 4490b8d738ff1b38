// The summary for the person who decides: what comes next, whether to trust it, and where to look.

const FUTURE = DATA.afters.length - 1;
const outlooks = new Map();

// What comes next of one series: means of forecast, interval and the steps before; null without a forecast.
function outlookOf(index) {
  if (!outlooks.has(index)) {
    const forecast = forecastOf(index, FUTURE);
    outlooks.set(index, forecast && forecast.past.length ? readOutlook(forecast) : null);
  }
  return outlooks.get(index);
}

function readOutlook(forecast) {
  const before = forecast.past.slice(-DATA.h);
  const level = mean(forecast.past);
  const spread = Math.sqrt(mean(forecast.past.map((value) => (value - level) ** 2)));
  const band = forecast.bands.find((one) => one.level === 80) || forecast.bands[forecast.bands.length - 1];
  const now = mean(forecast.final);
  return {
    forecast, band, mean: now, before: mean(before), steps: before.length,
    change: spread > 0 ? (now - mean(before)) / spread : 0,
  };
}

// Series sorted by how far their forecast is from the steps before it, in standard deviations.
const attention = () => DATA.series
  .map((series, i) => [i, outlookOf(i)])
  .filter(([, one]) => one !== null)
  .sort((a, b) => Math.abs(b[1].change) - Math.abs(a[1].change));

function drawSummary() {
  const series = DATA.series[state.series];
  const one = outlookOf(state.series);
  byId("summary-series").textContent = series.name;
  if (one === null) {
    byId("summary-next").textContent = "This series has too little history for a forecast.";
    byId("summary-total").textContent = "";
    byId("values").hidden = true;
    return;
  }
  const text = (value) => valueText(series, value);
  const range = one.band ? `; ${one.band.level} % between ${text(mean(one.band.lower))} and ${text(mean(one.band.upper))}` : "";
  byId("summary-next").textContent = `Next ${counted(DATA.h, "step")}: ${text(one.mean)} on average, ${text(one.before)} in the ${counted(one.steps, "step")} before${range}.`;
  const [total, low, high] = series.total;
  byId("summary-total").textContent = `In total ${text(total)}${low === undefined ? ". There is no interval: no windows were held out to measure errors." : `; 80 % between ${text(low)} and ${text(high)}.`}`;
  byId("summary-trust").textContent = trustText();
  drawAttention();
  byId("values").hidden = false;
  byId("values-table").replaceChildren(table(["time", "forecast", ...one.forecast.bands.flatMap(({ level }) => [`${level} % from`, "to"])], rowsOf(one.forecast, text)));
}

function trustText() {
  const [own, naive] = DATA.model.errorBesideNaive;
  if (own === null || !naive) return "Can I trust it? No windows were held out to compare it with a seasonal naive forecast.";
  const gain = 1 - own / naive;
  const words = Math.abs(gain) < 0.02 ? "as large as" : `${percent(Math.abs(gain))} ${gain > 0 ? "smaller" : "larger"} than`;
  return `Can I trust it? On held-out windows its error is ${words} that of repeating the last season (seasonal naive)${gain < 0.02 ? ": use it with care" : ""}.`;
}

function drawAttention() {
  const listed = attention().slice(0, 5).filter(([, one]) => Math.abs(one.change) >= 0.5);
  byId("summary-look").textContent = DATA.series.length === 1 ? "" : listed.length ? "Series that deserve a look:" : "No series moves away from its last values.";
  byId("attention").replaceChildren(...(DATA.series.length === 1 ? [] : listed).map(([i, one]) => {
    const series = DATA.series[i];
    const button = element("button", { class: "plain" }, `${series.name}: ${valueText(series, one.before)} \u2192 ${valueText(series, one.mean)}`);
    button.addEventListener("click", () => choose({ series: i }));
    return element("li", {}, button);
  }));
}

const rowsOf = (forecast, text) => forecast.final.map((value, step) => [
  timestampText(forecast.timestamps[forecast.past.length + step]), text(value),
  ...forecast.bands.flatMap((band) => [text(band.lower[step]), text(band.upper[step])]),
]);

// All forecasts from the end of the data as CSV; text that a spreadsheet could run as a formula gets an apostrophe.
function csvText() {
  const quoted = (value) => `"${(/^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) ? "'" : "") + value.replaceAll('"', '""')}"`;
  const heads = ["series", "time", "forecast", ...DATA.levels.flatMap((level) => [`lo-${level}`, `hi-${level}`])];
  const lines = [heads.join(",")];
  DATA.series.forEach((series, i) => {
    const one = outlookOf(i);
    if (one === null) return;
    const plain = (value) => String(Number(value.toPrecision(12)));
    rowsOf(one.forecast, plain).forEach(([time, ...values]) => lines.push([quoted(series.name), time, ...values].join(",")));
  });
  return lines.join("\n") + "\n";
}

function downloadCsv() {
  const link = element("a", { href: URL.createObjectURL(new Blob([csvText()], { type: "text/csv" })), download: "forecasts.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function copyTable() {
  const one = outlookOf(state.series);
  const rows = rowsOf(one.forecast, (value) => String(Number(value.toPrecision(12))));
  await navigator.clipboard.writeText(rows.map((row) => row.join("\t")).join("\n"));
  byId("spoken").textContent = "The table was copied.";
}
