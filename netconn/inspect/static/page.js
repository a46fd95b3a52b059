"use strict";

const el = id => document.getElementById(id);
const ms = ns => (ns / 1e6).toFixed(1) + " ms";
const percent = x => (100 * x).toFixed(1) + " %";
const rate = x => (x / 1000).toFixed(1) + " kB/s";
const body = id => document.querySelector("#" + id + " tbody");

// What is looked at; conn, also and the filter of actors are in the page's address too.
const asked = new URLSearchParams(location.search);
let picked = Number(asked.get("conn")) || 0;
let also = (asked.get("also") || "").split(",").map(Number).filter(n => n > 0).slice(0, 7);
let actorFilter = (asked.get("actors") || "").slice(0, 60), actorFrom = 0;
let connFilter = "", connFrom = 0, sortBy = "id", sortDown = false;
let source = null, heard = 0, paused = false, heldUntil = 0, charts = null, latest = null;

// While the main button of the mouse is down nothing moves, so that what is released on is what was pressed; for 3 s at most, since
// not every release is told, such as one outside of the window.
addEventListener("pointerdown", e => { if (e.button === 0) heldUntil = performance.now() + 3000; }, true);
for (const e of ["pointerup", "pointercancel", "blur"]) addEventListener(e, () => { heldUntil = 0; }, true);

// S saves what Look back shows.
addEventListener("keydown", e => {
  if (e.key !== "s" || e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "INPUT" || el("past").hidden) return;
  const a = document.createElement("a");
  a.href = el("past").href;
  a.download = "film.html";
  a.click();
});

// sync makes a parent's children those of the list, by key: those that there are stay the same elements. Items of one key have an
// element each, by their order. Texts may come from peers, so they are only ever text.
function sync(parent, list, key, make, update) {
  const known = parent.known ||= new Map(), times = new Map();
  const keyed = new Map(list.map(item => {
    const k = String(key(item)), n = times.get(k) || 0;
    times.set(k, n + 1);
    return [k + "\0" + n, item];
  }));
  if (performance.now() < heldUntil) {
    for (const [k, item] of keyed) {
      const node = known.get(k);
      if (node) { node.item = item; update(node, item); }
    }
    return;
  }
  const nodes = [...keyed].map(([k, item]) => {
    let node = known.get(k);
    if (!node) {
      node = make(item);
      known.set(k, node);
      parent.append(node);
    }
    node.item = item;
    update(node, item);
    return node;
  });
  for (const [k, node] of known) {
    if (!keyed.has(k)) { known.delete(k); node.remove(); }
  }
  nodes.forEach((node, i) => { if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] || null); });
}

const setText = (node, text) => { text = String(text); if (node.textContent !== text) node.textContent = text; };
const setClass = (node, name) => { if (node.className !== name) node.className = name; };

// table is sync for rows, whose cells are texts, or { text, cls }, or { n, of, text } for a bar, or elements made once.
function table(id, list, key, cells, made) {
  sync(body(id), list, key, item => {
    const tr = document.createElement("tr");
    if (made) made(tr, item);
    return tr;
  }, (tr, item) => cells(item, tr).forEach((c, i) => cell(tr.children[i] || tr.appendChild(document.createElement("td")), c)));
}

function cell(td, c) {
  if (c instanceof Node) {
    if (td.firstChild !== c) td.replaceChildren(c);
    setClass(td, "l");
  } else if (c && c.of !== undefined) {
    if (!td.bar) {
      const box = document.createElement("span");
      box.className = "fill";
      td.bar = box.appendChild(document.createElement("i"));
      td.append(box, document.createElement("span"));
      td.className = "l";
    }
    const share = c.of > 0 ? c.n / c.of : 0;
    td.bar.style.width = (100 * share).toFixed(1) + "%";
    setClass(td.bar, c.warn && share > 0.8 ? "high" : "");
    setText(td.lastChild, c.text);
  } else if (c && typeof c === "object") {
    setText(td, c.text);
    setClass(td, c.cls);
  } else {
    setText(td, c);
  }
}

const left = text => ({ text, cls: "l" });
const bad = (text, is) => ({ text, cls: is ? "bad" : "" });

const state = c => c.Joined ? "joined" : "login";

function showConns(v) {
  el("none").hidden = v.ConnCount > 0;
  setText(el("conncount"), (v.ConnMatches === v.ConnCount ? v.ConnCount : v.ConnMatches + " of " + v.ConnCount) +
    (v.Conns.length < v.ConnMatches ? ", " + v.Conns.length + " shown" + (connFrom ? " from " + connFrom : "") : ""));
  el("firstconns").hidden = !connFrom;
  el("moreconns").hidden = !v.ConnNext;
  const t = v.Totals;
  setText(el("sums"), v.ConnCount > 1 ? "All: " + t.Joined + " joined, receive " + rate(t.InRate) + ", send " + rate(t.OutRate) + ", " + t.PacketsInFlight + " packets in flight, " +
    t.QueuedReliable + " reliable bunches, " + t.Channels + " channels" : "");
  table("conns", v.Conns, c => c.ID, (c, tr) => {
    const s = c.Stats, r = s.Rates;
    tr.beside.checked = also.includes(c.ID);
    setClass(tr, v.Detail && v.Detail.Conn === c.ID ? "picked" : "");
    return [tr.beside, c.ID, left(c.Addr), left(c.Name || ""), left(state(c)), ms(s.RTT), ms(s.Jitter), bad(percent(r.OutLoss), r.OutLoss > 0.1),
      bad(percent(r.InLoss), r.InLoss > 0.1), rate(r.InBytes), rate(r.OutBytes), s.PacketsInFlight, s.QueuedReliable, s.Channels];
  }, (tr, c) => {
    tr.dataset.conn = c.ID;
    tr.addEventListener("click", () => pick(c.ID));
    tr.beside = document.createElement("input");
    tr.beside.type = "checkbox";
    tr.beside.addEventListener("click", e => { e.stopPropagation(); beside(c.ID, tr.beside.checked); });
  });
}

for (const th of document.querySelectorAll("#conns th[data-sort]")) {
  th.addEventListener("click", () => {
    const numbers = !th.classList.contains("l") && th.dataset.sort !== "id"; // the largest first
    [sortBy, sortDown] = sortBy === th.dataset.sort ? [sortBy, !sortDown] : [th.dataset.sort, numbers];
    for (const other of document.querySelectorAll("#conns th[data-sort]")) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", sortDown ? "descending" : "ascending");
    connFrom = 0;
    watch();
  });
}

function showEnded(list) {
  el("ended").hidden = !list || list.length === 0;
  table("endings", list || [], e => e.Conn + " " + e.At, e => [e.Conn, left(e.Addr), left(e.Name || ""), (e.At / 1e9).toFixed(1) + " s", left(e.Why), bad(e.Unacked, e.Unacked > 0)]);
}

// figure is a number of a legend: the newest one while the mouse is elsewhere.
function figure(u, x, of) {
  const last = x ?? u.data[of][u.data[of].length - 1];
  return last == null ? "-" : last.toFixed(1);
}

function chart(id, series) {
  const box = el(id);
  const style = getComputedStyle(document.documentElement);
  const axis = { stroke: style.getPropertyValue("--dim"), grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { show: false } };
  const plot = new uPlot({
    width: box.clientWidth, height: 150, scales: { x: { time: false }, y: { range: (u, lo, hi) => [0, hi > 0 ? hi * 1.1 : 1] } },
    cursor: { sync: { key: "curves" } }, legend: { live: true },
    axes: [{ ...axis, size: 26, values: (u, t) => t.map(x => x + " s") }, { ...axis, size: 46 }],
    series: [{ label: "at", value: (u, x) => figure(u, x, 0) + " s" },
      ...series.map(([label, color]) => ({ label, stroke: style.getPropertyValue(color), width: 1.5, points: { show: false }, value: figure }))],
  }, [[], ...series.map(() => [])], box);
  addEventListener("resize", () => plot.setSize({ width: box.clientWidth, height: 150 }));
  return plot;
}

let loads = null;

function showHealth(v) {
  loads ||= {
    ticks: chart("ticks", [["mean", "--received"], ["longest, under", "--again"]]),
    pauses: chart("pauses", [["pause, under", "--lost"]]),
  };
  const at = v.Load.map(l => l.At / 1e9);
  loads.ticks.setData([at, v.Load.map(l => l.Mean / 1e6), v.Load.map(l => l.Worst / 1e6)]);
  loads.pauses.setData([at, v.Load.map(l => l.Pause / 1e6)]);
  const last = v.Load[v.Load.length - 1];
  const figures = last ? [["dispatch", (last.Dispatch / 1e6).toFixed(2) + " ms"], ["step", (last.Step / 1e6).toFixed(2) + " ms"], ["flush", (last.Flush / 1e6).toFixed(2) + " ms"],
    ["collections", v.Load.reduce((n, l) => n + l.Collections, 0) + " shown"], ["heap", (last.Heap / 1e6).toFixed(1) + " MB"], ["goroutines", last.Goroutines]] : [];
  table("figures", [...figures, ...v.Figures.map(f => [f.Name, f.Value])], f => f[0], f => [left(f[0]), f[1]]);
  const refused = Object.entries(v.Refusals).sort();
  el("norefusals").hidden = refused.length > 0;
  table("refusals", refused, r => r[0], r => [left(r[0].replaceAll("_", " ")), r[1]]);
}

function showCurves(d) {
  charts ||= {
    rtt: chart("rtt", [["RTT", "--received"], ["jitter", "--again"]]),
    loss: chart("loss", [["out", "--lost"], ["in", "--again"]]),
    bandwidth: chart("bandwidth", [["receives", "--received"], ["sends", "--acked"]]),
    queues: chart("queues", [["packets in flight", "--received"], ["reliable bunches", "--lost"]]),
  };
  const at = d.Samples.map(s => s.At / 1e9), of = f => d.Samples.map(f);
  charts.rtt.setData([at, of(s => s.RTT / 1e6), of(s => s.Jitter / 1e6)]);
  charts.loss.setData([at, of(s => 100 * s.OutLoss), of(s => 100 * s.InLoss)]);
  charts.bandwidth.setData([at, of(s => s.InRate / 1000), of(s => s.OutRate / 1000)]);
  charts.queues.setData([at, of(s => s.InFlight), of(s => s.QueuedReliable)]);
}

const hue = channel => "hsl(" + (channel * 137.5) % 360 + " 55% 52%)";

function describe(p) {
  const bunches = p.Bunches.map(b => "channel " + b.Channel + (b.Reliable ? " sequence " + b.Sequence : " unreliable") + ", " + b.Bits + " bits" +
    (b.Open ? ", open" : "") + (b.Close ? ", close" : "") + (b.Partial ? ", part" : "") + (b.Resent ? ", sent again" : ""));
  if (p.More) bunches.push("and " + p.More + " more");
  return "Packet " + p.ID + " at " + (p.At / 1e9).toFixed(3) + " s, " + p.Bytes + " bytes, " + p.State + (p.RTT ? " after " + ms(p.RTT) : "") +
    ": " + (bunches.join("; ") || "no bunches, only acks");
}

function showPackets(id, conn, list) {
  sync(el(id), list, p => conn + " " + p.ID, p => {
    const div = document.createElement("div");
    for (const b of p.Bunches) {
      const i = document.createElement("i");
      i.className = (b.Reliable ? "reliable" : "") + (b.Resent ? " again" : "");
      i.style.setProperty("--c", hue(b.Channel));
      i.style.height = Math.min(40, 3 + b.Bits / 40) + "px";
      div.append(i);
    }
    div.addEventListener("mouseenter", () => { el("packet").textContent = describe(div.item); });
    div.addEventListener("click", () => { el("packet").textContent = describe(div.item); setPaused(true); });
    return div;
  }, (div, p) => setClass(div, "p " + p.State));
}

// The packets of several connections with one time axis: a row for each direction, a bar for each packet.
const timeline = { span: 2e9, row: 26, label: 150, bars: [] };

function showTimeline(v) {
  const d = v.Detail;
  const lanes = [{ Conn: d.Conn, Name: d.Name, NoHistory: d.NoHistory, Sent: d.Sent, Received: d.Received }, ...v.Others.filter(o => o.Conn !== d.Conn)];
  el("beside").hidden = lanes.length < 2;
  timeline.bars = [];
  if (lanes.length < 2) return;
  const canvas = el("timeline"), scale = devicePixelRatio || 1, width = canvas.parentElement.clientWidth, height = lanes.length * 2 * timeline.row + 18;
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  const g = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), color = n => style.getPropertyValue("--" + n);
  g.scale(scale, scale);
  g.font = "11px system-ui, sans-serif";
  const end = Math.max(0, ...lanes.flatMap(l => [...l.Sent, ...l.Received].map(p => p.At)));
  const x = at => timeline.label + (width - timeline.label - 4) * (1 - (end - at) / timeline.span);
  for (let t = Math.ceil((end - timeline.span) / 2.5e8) * 2.5e8; t <= end; t += 2.5e8) {
    g.fillStyle = color("line");
    g.fillRect(x(t), 0, 1, height - 14);
    g.fillStyle = color("dim");
    g.fillText((t / 1e9).toFixed(2) + " s", x(t) - 14, height - 3);
  }
  lanes.forEach((l, n) => [[l.Sent, " out"], [l.Received, " in"]].forEach(([list, way], k) => {
    const base = (2 * n + k + 1) * timeline.row;
    g.fillStyle = color("dim");
    g.fillText((l.Conn + " " + (l.Name || "")).slice(0, 18) + (l.NoHistory ? " not kept" : way), 0, base - 4);
    g.fillStyle = color("line");
    g.fillRect(timeline.label, base - 1, width, 1);
    for (const p of list) {
      if (p.At < end - timeline.span) continue;
      const h = Math.max(4, Math.min(1, p.Bytes / 1200) * (timeline.row - 5));
      g.fillStyle = color(p.State);
      g.fillRect(x(p.At), base - 1 - h, 3, h);
      timeline.bars.push({ x: x(p.At), top: base - timeline.row, bottom: base, p, conn: l.Conn });
    }
  }));
}

el("timeline").addEventListener("mousemove", e => {
  const r = el("timeline").getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
  let best = null;
  for (const b of timeline.bars) {
    if (y >= b.top && y < b.bottom && Math.abs(b.x + 1 - x) < 6 && (!best || Math.abs(b.x + 1 - x) < Math.abs(best.x + 1 - x))) best = b;
  }
  if (best) el("packet").textContent = "Connection " + best.conn + ": " + describe(best.p);
});

function showBits(id, list, more) {
  const total = list.reduce((n, p) => n + p.Bits, 0);
  table(id, list, p => p.Name, p => [left(p.Name), ...more(p), p.Bits, { n: p.Bits, of: total, text: percent(total ? p.Bits / total : 0) }]);
}

function showDetail(v) {
  const d = v.Detail;
  el("detail").hidden = !d;
  if (!d) return;
  setText(el("which"), d.Conn + (d.Name ? ", " + d.Name : ""));
  el("nohistory").hidden = !d.NoHistory;
  showCurves(d);
  showPackets("sent", d.Conn, d.Sent);
  showPackets("received", d.Conn, d.Received);
  showTimeline(v);
  setText(el("channelcount"), d.ChannelCount);
  table("channels", d.Channels, c => c.Index + " " + c.Name, c => [c.Index, left(c.Name), left((c.Local ? "us" : "peer") + (c.OpenAcked ? "" : ", not acked") + (c.Closed ? ", closing" : "")),
    { n: c.OutRec, of: c.OutRec + c.Room, text: c.OutRec + " of " + (c.OutRec + c.Room), warn: true }, left(c.InRec)]);
  setText(el("idle"), d.Idle.length ? "Idle: " + d.Idle.map(c => c.Count + " " + c.Name).join(", ") : "");
  setText(el("actorcount"), d.ActorCount ? d.Actors.length + " of " + d.ActorCount + (actorFrom ? ", from " + actorFrom : "") : "");
  el("firstactors").hidden = !actorFrom;
  el("moreactors").hidden = !d.ActorNext;
  table("actors", d.Actors, a => a.ID, a => [left(a.Class), left(a.ID), a.Channel, a.Bits, { text: a.Explain, cls: "l why" }]);
  showBits("properties", d.Properties.filter(p => !p.Name.endsWith("()")), () => []);
  showBits("calls", d.Properties.filter(p => p.Name.endsWith("()")), p => [p.Sent, p.Received, p.Refused]);
}

function show(v) {
  latest = v;
  document.title = v.Title + " " + v.Addr;
  setText(el("title"), v.Title);
  el("past").hidden = !v.Past;
  el("past").href = "past" + (v.Detail ? "?conn=" + v.Detail.Conn : "");
  setText(el("role"), (v.Server ? "server at " : "client at ") + v.Addr + ", up " + (v.At / 1e9).toFixed(0) + " s");
  const c = v.Counters;
  setText(el("totals"), c.DatagramsIn + " datagrams in, " + c.DatagramsOut + " out; " + c.Accepted + " connections, " + c.Closed + " closed");
  showHealth(v);
  showConns(v);
  showEnded(v.Ended);
  showDetail(v);
}

function say(text, live) {
  setText(el("live"), text);
  setClass(el("live"), live ? "" : "off");
}

// query is what is looked at, as the server wants it.
function query() {
  const q = new URLSearchParams();
  if (picked) q.set("conn", picked);
  if (also.length) q.set("also", also.join(","));
  if (actorFilter) q.set("actors", actorFilter);
  return q;
}

function watch() {
  const q = query(), link = q.toString();
  history.replaceState(null, "", link ? "?" + link : location.pathname);
  if (connFilter) q.set("conns", connFilter);
  if (sortBy !== "id" || sortDown) q.set("sort", (sortDown ? "-" : "") + sortBy);
  if (connFrom) q.set("connsfrom", connFrom);
  if (actorFrom) q.set("from", actorFrom);
  const s = q.toString() ? "?" + q : "";
  el("export").href = "export" + s;
  if (source) source.close();
  source = new EventSource("events" + s);
  heard = performance.now();
  source.onmessage = e => {
    heard = performance.now();
    if (paused) return;
    const v = JSON.parse(e.data);
    if (picked && !v.Detail && v.ConnCount > 0) { pick(0); return; } // the connection has ended
    say("live", true);
    show(v);
  };
  source.addEventListener("stalled", e => { heard = performance.now(); say(JSON.parse(e.data), false); });
  source.onerror = e => refused(e.target);
}

// A connection may end without a word, as that of a machine that slept: when events are long overdue, the page asks again.
setInterval(() => {
  const overdue = 10000 + 2 * (latest ? latest.Interval / 1e6 : 0);
  if (source.readyState === EventSource.CLOSED || performance.now() - heard < overdue) return;
  say("no answer", false);
  watch();
}, 1000);

// refused says why there are no events. A browser asks again when nobody answered, and not when a server said no, as to too many viewers.
function refused(s) {
  if (s !== source) return;
  say("no answer", false);
  if (s.readyState !== EventSource.CLOSED) return;
  fetch(s.url).then(async r => {
    const why = r.ok ? "a place is free" : await r.text();
    if (r.ok) r.body.cancel();
    if (s === source) say(why.trim().replace("inspect: ", ""), false);
  }).catch(() => {});
  setTimeout(() => { if (s === source) watch(); }, 5000);
}

function pick(id) {
  picked = id;
  actorFrom = 0;
  setPaused(false);
  watch();
}

function beside(id, is) {
  also = also.filter(n => n !== id);
  if (is) also = [...also, id].slice(-7);
  watch();
}

function setPaused(p) {
  paused = p;
  setText(el("pause"), paused ? "Go on" : "Pause");
  if (paused) say("paused", false);
}

el("pause").addEventListener("click", () => setPaused(!paused));

// filter has a field's text looked for, from the first row on, when no key has been pressed for a moment.
function filter(id, look) {
  let typing = 0;
  el(id).addEventListener("input", e => {
    clearTimeout(typing);
    typing = setTimeout(() => { look(e.target.value); watch(); }, 300);
  });
}

filter("connfilter", text => { connFilter = text; connFrom = 0; });
el("actorfilter").value = actorFilter;
filter("actorfilter", text => { actorFilter = text; actorFrom = 0; });
el("moreconns").addEventListener("click", () => { connFrom = latest.ConnNext; watch(); });
el("firstconns").addEventListener("click", () => { connFrom = 0; watch(); });
el("moreactors").addEventListener("click", () => { actorFrom = latest.Detail.ActorNext; watch(); });
el("firstactors").addEventListener("click", () => { actorFrom = 0; watch(); });
watch();
