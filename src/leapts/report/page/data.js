// Decode the embedded data: a row of values is decoded only when it is shown.

const DATA = JSON.parse(document.getElementById("data").textContent);
const SCALES = DATA.scales;
const SHOWN = Math.min(Math.max(DATA.lookback, 2 * DATA.h), 4 * DATA.h);

const numbers = (row) => (row === "" ? [] : row.split(" ").map(Number));
const power = (digits) => Math.pow(10, Math.abs(digits));

// Convert the integers of a series, counted from its median, to values.
function unpack(series, row, middle = series.middle) {
  const factor = power(series.digits);
  return numbers(row).map((n) => (series.digits > 0 ? (n + middle) / factor : (n + middle) * factor));
}

const clocks = new Map();
// Timestamps are stored as the first one and runs of equal gaps.
function timestampsOf(index) {
  if (!clocks.has(index)) {
    const [first, ...runs] = DATA.clocks[index];
    const timestamps = [first];
    for (let i = 0; i < runs.length; i += 2) {
      for (let n = 0; n < runs[i + 1]; n++) timestamps.push(timestamps[timestamps.length - 1] + runs[i]);
    }
    clocks.set(index, timestamps);
  }
  return clocks.get(index);
}

// The leaps of one forecast.
function leapsOf(series, cutoff) {
  const text = series.leaps[cutoff];
  if (!text) return [];
  let start = 0;
  return text.split(";").map((leap, number) => {
    const [length, scale, short, mid, long, control, temporal] = numbers(leap);
    const all = control + temporal || 1;
    const found = {
      number, start, end: start + length, length, scale: SCALES[scale],
      chances: [short / 1000, mid / 1000, long / 1000], control: control / all, temporal: temporal / all,
    };
    start += length;
    return found;
  });
}

// The intervals of one forecast. Their ends are in tens of units, each counted from the end below it.
function bandsOf(series, cutoff) {
  let below = Array(DATA.h).fill(Math.floor(series.middle / 10));
  const factor = power(series.digits - 1);
  const ends = (series.bands[cutoff] || []).map((row) => {
    below = numbers(row).map((n, step) => n + below[step]);
    return below.map((n) => (series.digits > 1 ? n / factor : n * factor));
  });
  return DATA.levels.map((level, i) => ({ level, lower: ends[DATA.levels.length - 1 - i], upper: ends[DATA.levels.length + i] }));
}

// The kind of the window after a cutoff: new, held out or training.
function kindOf(series, cutoff) {
  const after = DATA.afters[cutoff];
  if (after === 0) return "future";
  if (series.unseen === null || after <= series.unseen) return "new";
  return after - series.unseen <= DATA.heldOut ? "held out" : "training";
}

// The data of one chart; null when the series has too little history before the cutoff.
function forecastOf(seriesIndex, cutoff, shown = SHOWN) {
  const series = DATA.series[seriesIndex];
  if (series.final[cutoff] === null) return null;
  const values = unpack(series, series.values);
  const at = values.length - DATA.afters[cutoff];
  const from = Math.max(0, at - shown);
  const final = unpack(series, series.final[cutoff]);
  const differences = series.coarse[cutoff] === null ? null : unpack(series, series.coarse[cutoff], 0);
  return {
    series, cutoff, final,
    coarse: differences && differences.map((difference, step) => final[step] + difference),
    past: values.slice(from, at),
    actual: values.slice(at, at + DATA.h),
    timestamps: timestampsOf(series.clock).slice(from, at + DATA.h),
    bands: bandsOf(series, cutoff),
    leaps: leapsOf(series, cutoff),
    kind: kindOf(series, cutoff),
  };
}

const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;

// Format numbers and timestamps.

// At least four digits, and as many as the resolution of the series.
function inPowers(value, digits) {
  const wanted = Math.floor(Math.log10(Math.abs(value))) + 1 + digits;
  const [mantissa, power] = value.toPrecision(Math.max(4, Math.min(wanted, 15))).split("e");
  const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return power === undefined ? short : `${short}e${power}`;
}
function formatted(value, digits) {
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size >= 1e15 || (size >= 1e7 && digits < 0) || (size > 0 && digits > 7)) return inPowers(value, digits);
  const places = Math.max(0, Math.min(digits, 6));
  return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }).replace(/^-(0(\.0*)?)$/, "$1");
}
const valueText = (series, value) => formatted(value, series.digits - 1);
const percent = (share, places = 0) => `${(100 * share).toFixed(places)}\u00a0%`;
const counted = (count, noun) => `${count.toLocaleString("en")} ${count === 1 || noun.endsWith("s") ? noun : noun + "s"}`;

const pad = (n, width = 2) => String(n).padStart(width, "0");
function timestampText(timestamp) {
  if (!DATA.dates) return String(timestamp);
  const date = new Date(timestamp);
  const day = `${pad(date.getUTCFullYear(), 4)}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`;
  if (timestamp % 86400000 === 0) return day;
  const time = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
  return `${day} ${time}${timestamp % 60000 === 0 ? "" : ":" + pad(date.getUTCSeconds())}`;
}
