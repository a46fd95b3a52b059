"use strict";

const el = id => document.getElementById(id);
const ms = ns => (ns / 1e6).toFixed(1) + " ms";
const percent = x => (100 * x).toFixed(1) + " %";
const rate = x => (x / 1000).toFixed(1) + " kB/s";

let picked = 0, source = null, paused = false, charts = null;

// row makes a table row. Texts may come from peers, so they are only ever text.
function row(cells) {
  const tr = document.createElement("tr");
  for (const c of cells) {
    const td = document.createElement("td");
    if (c instanceof Node) td.append(c);
    else if (c && typeof c === "object") { td.textContent = c.text; td.className = c.cls; }
    else td.textContent = c;
    if (c instanceof Node) td.className = "l";
    tr.append(td);
  }
  return tr;
}

const left = text => ({ text, cls: "l" });
const bad = (text, is) => ({ text, cls: is ? "bad" : "" });
const body = id => document.querySelector("#" + id + " tbody");

function fill(n, of) {
  const span = document.createElement("span"), box = document.createElement("span"), bar = document.createElement("i");
  box.className = "fill";
  const share = of > 0 ? n / of : 0;
  bar.style.width = (100 * share).toFixed(1) + "%";
  if (share > 0.8) bar.className = "high";
  box.append(bar);
  span.append(box, n + " of " + of);
  return span;
}

function showConns(v) {
  el("none").hidden = v.Conns.length > 0;
  body("conns").replaceChildren(...v.Conns.map(c => {
    const s = c.Stats, r = s.Rates;
    const tr = row([c.ID, left(c.Addr), left(c.Name || ""), left(c.Joined ? "joined" : "login"), ms(s.RTT), ms(s.Jitter),
      bad(percent(r.OutLoss), r.OutLoss > 0.1), bad(percent(r.InLoss), r.InLoss > 0.1), rate(r.InBytes), rate(r.OutBytes),
      s.PacketsInFlight, s.QueuedReliable, s.Channels]);
    tr.dataset.conn = c.ID;
    if (v.Detail && v.Detail.Conn === c.ID) tr.className = "picked";
    tr.addEventListener("click", () => pick(c.ID));
    return tr;
  }));
}

function showEnded(list) {
  el("ended").hidden = !list || list.length === 0;
  body("endings").replaceChildren(...(list || []).map(e => row([e.Conn, left(e.Addr), left(e.Name || ""), (e.At / 1e9).toFixed(1) + " s", left(e.Why), bad(e.Unacked, e.Unacked > 0)])));
}

function chart(id, series) {
  const box = el(id);
  const style = getComputedStyle(document.documentElement);
  const axis = { stroke: style.getPropertyValue("--dim"), grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { show: false } };
  const plot = new uPlot({
    width: box.clientWidth, height: 150, scales: { x: { time: false }, y: { range: (u, lo, hi) => [0, hi > 0 ? hi * 1.1 : 1] } },
    cursor: { sync: { key: "curves" } }, legend: { live: true },
    axes: [{ ...axis, size: 26, values: (u, t) => t.map(x => x + " s") }, { ...axis, size: 46 }],
    series: [{ label: "s" }, ...series.map(([label, color]) => ({ label, stroke: style.getPropertyValue(color), width: 1.5, points: { show: false }, value: (u, x) => x == null ? "-" : x.toFixed(1) }))],
  }, [[], ...series.map(() => [])], box);
  addEventListener("resize", () => plot.setSize({ width: box.clientWidth, height: 150 }));
  return plot;
}

function showCurves(d) {
  charts ||= {
    rtt: chart("rtt", [["RTT", "--received"], ["jitter", "--again"]]),
    loss: chart("loss", [["out", "--lost"], ["in", "--again"]]),
    bandwidth: chart("bandwidth", [["in", "--received"], ["out", "--acked"]]),
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

function showPackets(id, list) {
  el(id).replaceChildren(...list.map(p => {
    const div = document.createElement("div");
    div.className = "p " + p.State;
    for (const b of p.Bunches) {
      const i = document.createElement("i");
      i.className = (b.Reliable ? "reliable" : "") + (b.Resent ? " again" : "");
      i.style.setProperty("--c", hue(b.Channel));
      i.style.height = Math.min(40, 3 + b.Bits / 40) + "px";
      div.append(i);
    }
    div.addEventListener("mouseenter", () => { el("packet").textContent = describe(p); });
    div.addEventListener("click", () => { el("packet").textContent = describe(p); setPaused(true); });
    return div;
  }));
}

function showDetail(v) {
  const d = v.Detail;
  el("detail").hidden = !d;
  if (!d) return;
  showCurves(d);
  showPackets("sent", d.Sent);
  showPackets("received", d.Received);
  const conn = v.Conns.find(c => c.ID === d.Conn);
  el("channelcount").textContent = conn ? conn.Stats.Channels : "";
  body("channels").replaceChildren(...d.Channels.map(c => row([c.Index, left(c.Name), left((c.Local ? "us" : "peer") + (c.OpenAcked ? "" : ", not acked") + (c.Closed ? ", closing" : "")),
    fill(c.OutRec, c.OutRec + c.Room), left(c.InRec)])));
  el("actorcount").textContent = d.ActorCount || "";
  body("actors").replaceChildren(...d.Actors.map(a => row([left(a.Class), left(a.ID), a.Channel, a.Bits, { text: a.Explain, cls: "l why" }])));
  const total = d.Properties.reduce((n, p) => n + p.Bits, 0);
  body("properties").replaceChildren(...d.Properties.map(p => {
    const share = fill(p.Bits, total);
    share.lastChild.textContent = percent(total ? p.Bits / total : 0);
    return row([left(p.Name), p.Bits, share]);
  }));
}

function show(v) {
  document.title = v.Title + " " + v.Addr;
  el("title").textContent = v.Title;
  el("role").textContent = (v.Server ? "server at " : "client at ") + v.Addr + ", up " + (v.At / 1e9).toFixed(0) + " s";
  const c = v.Counters;
  el("totals").textContent = c.DatagramsIn + " datagrams in, " + c.DatagramsOut + " out, " + c.Refused + " refused; " + c.Accepted + " connections, " + c.Closed + " closed";
  showConns(v);
  showEnded(v.Ended);
  showDetail(v);
}

function state(text, live) {
  el("live").textContent = text;
  el("live").className = live ? "" : "off";
}

function watch() {
  if (source) source.close();
  source = new EventSource("events" + (picked ? "?conn=" + picked : ""));
  source.onmessage = e => {
    if (paused) return;
    const v = JSON.parse(e.data);
    if (picked && !v.Detail && v.Conns.length > 0) { pick(0); return; } // the connection has ended
    state("live", true);
    show(v);
  };
  source.addEventListener("stalled", e => state(JSON.parse(e.data), false));
  source.onerror = () => state("no answer", false);
}

function pick(id) {
  picked = id;
  setPaused(false);
  watch();
}

function setPaused(p) {
  paused = p;
  el("pause").textContent = paused ? "Go on" : "Pause";
  if (paused) state("paused", false);
}

el("pause").addEventListener("click", () => setPaused(!paused));
watch();
