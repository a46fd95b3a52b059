"use strict";
// The page of a film: everything is in the document that comes with it. Times are in ms.

const el = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const seconds = t => (t / 1000).toFixed(3);

let film = null, t = 0, conn = null, actor = -1, part = "", playing = false, filter = "", noteFilter = "";

// most is the bytes that a film may have when it is unpacked: a file from somebody else may be a small one that becomes a huge one.
let most = 500e6;
async function unpack(text) {
  const raw = Uint8Array.from(atob(text.trim()), c => c.charCodeAt(0));
  const pieces = [], from = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  for (let size = 0, next; !(next = await from.read()).done; pieces.push(next.value)) if ((size += next.value.length) > most) throw "it has more than " + most / 1e6 + " MB";
  const lines = (await new Blob(pieces).text()).trimEnd().split("\n").map(line => JSON.parse(line)), film = lines[0];
  for (const key of ["Steps", "Classes", "Notes", "Unsaid", "Waits"]) film[key] = film[key] || [];
  const rest = lines.slice(1);
  film.Actors = rest.slice(0, film.Actors);
  film.Conns = rest.slice(film.Actors.length);
  for (const a of film.Actors) for (const p of a.Parts) {
    let step = 0;
    p.At = p.At.map(more => step += more);
  }
  for (const c of film.Conns) {
    const packets = new Map();
    c.Sent.forEach(([id], i) => packets.set(id, i));
    c.Sent = c.Sent.map(([ID, At, Bytes]) => ({ ID, At, Bytes, Fate: 0, Told: 0 }));
    for (const [id, fate, told] of c.Fates) if (packets.has(id)) Object.assign(c.Sent[packets.get(id)], { Fate: fate, Told: told });
    c.Records = c.Records.filter(([id]) => packets.has(id)).map(([id, Actor, Units, kind, Of, Waited, Seq]) =>
      ({ Packet: packets.get(id), Actor, Units, Opens: kind === 1, Reliable: kind > 1, Closes: kind === 3, Of, Waited, Seq })).sort((a, b) => a.Packet - b.Packet);
    c.Calls = c.Calls.map(([id, Actor, Name, flags, At, Refused]) =>
      ({ Packet: packets.get(id), Actor, Name, Reliable: (flags & 1) !== 0, Came: (flags & 2) !== 0, At, Refused }));
  }
  return film;
}

// last is the index of the last element of a sorted list for which key is at most x, or -1.
function last(list, x, key) {
  let lo = 0, hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (key(list[mid]) <= x) lo = mid + 1; else hi = mid;
  }
  return lo - 1;
}

const stepAt = time => last(film.Steps, time, s => s);
const same = x => x;
const exists = (a, step) => a.From <= step && (a.To < 0 || step < a.To);
const overlap = (a, b) => (BigInt("0x" + (a || "0")) & BigInt("0x" + (b || "0"))) !== 0n;

// at is a part's value in a Step, or undefined before its first.
function at(p, step) {
  const i = last(p.At, step, same);
  return i < 0 ? undefined : p.Of[i];
}

// arrived reports whether a packet came to the client, as far as is known, and arrival when: the client's film says it, else it was about halfway to the ack.
const arrived = p => p.Got !== undefined || p.Fate === 1;
const arrival = p => p.Got !== undefined ? p.Got : (p.At + p.Told) / 2;

// index makes what is looked up for a connection: its records by actor.
function index(c) {
  if (c.byActor) return c;
  c.byActor = new Map();
  c.known = new Map();
  c.turned = new Map();
  for (const r of c.Records) {
    if (!c.byActor.has(r.Actor)) c.byActor.set(r.Actor, []);
    c.byActor.get(r.Actor).push(r);
  }
  return c;
}

// known is the records of a part, and the Steps whose values arrived with their times, the newest value at each.
function known(c, n, p) {
  const units = unitsOf(film.Actors[n], p), key = n + " " + units;
  index(c);
  let k = c.known.get(key);
  if (!k) {
    const records = (c.byActor.get(n) || []).filter(r => overlap(r.Units, units)), got = [];
    const acked = records.filter(r => arrived(c.Sent[r.Packet])).map(r => ({ at: arrival(c.Sent[r.Packet]), step: stepOf(c, r), packet: c.Sent[r.Packet] })).sort((a, b) => a.at - b.at);
    for (const g of acked) if (!got.length || g.step > got[got.length - 1].step) got.push(g);
    c.known.set(key, k = { records, got });
  }
  return k;
}

// stepOf is the Step whose values a record has: a reliable bunch has those of when it was made.
const stepOf = (c, r) => stepAt((r.Opens || r.Reliable ? r.Of : c.Sent[r.Packet].At) + 0.5);

// quantile is a list's element below which a share of the list is. It sorts the list.
const quantile = (list, share) => list.sort((a, b) => a - b)[Math.floor(share * (list.length - 1))];

// join puts a client's film beside the connection that it is of, and returns why it can't. The packets' numbers say which one that is. The clocks of both
// ends differ by what makes packets arrive after they were sent, and before the server knew that they were acked. Some may have wrong times: after a stall a
// ticker's times are old. Where these contradict each other the page says how far; half a second of that is another film.
function join(client) {
  if (!client.Client) return "this isn't the film of a client";
  const from = client.Conns.find(k => k.Got.length);
  if (!from) return "the client's film has no packets";
  const got = new Map(from.Got), ids = from.Got.map(([id]) => id), oldest = Math.min(...ids.slice(0, 100)), newest = Math.max(...ids.slice(-100));
  let best = null;
  for (const c of film.Conns) {
    const after = [], before = [];
    let wrong = 0;
    for (const p of c.Sent) {
      const at = got.get(p.ID);
      if (at === undefined) {
        if (p.Fate === 1 && p.ID > oldest && p.ID < newest) wrong++;
        continue;
      }
      after.push(at - p.At);
      if (p.Fate === 1) before.push(at - p.Told);
    }
    const n = after.length, share = wrong / n;
    if (n < 3 || share > 0.02) continue;
    const hi = quantile(after, 0.05), lo = before.length ? quantile(before, 0.95) : hi, unsure = Math.max(0, lo - hi - 20) / 2;
    if (unsure > 500) continue;
    if (!best || share < best.share || share === best.share && (unsure < best.unsure || unsure === best.unsure && c === conn)) best = { c, share, unsure, ahead: (lo + hi) / 2 };
  }
  if (!best) return "its packets are of no connection here, or of another time";
  const { c, ahead, unsure } = best;
  for (const k of client.Steps.keys()) client.Steps[k] -= ahead;
  const byID = new Map();
  film.Actors.forEach((a, n) => byID.set(a.ID, [...(byID.get(a.ID) || []), n]));
  const end = film.Steps[film.Steps.length - 1] + 1000, from0 = a => a.From ? film.Steps[a.From] : -Infinity, to0 = a => a.To < 0 ? end : film.Steps[a.To];
  // One offset for all packets is off by some ms for each: it came after it was sent, and before its ack.
  for (const p of c.Sent) if (got.has(p.ID)) p.Got = Math.min(Math.max(got.get(p.ID) - ahead, p.At), p.Fate === 1 ? p.Told : Infinity);
  c.byActor = undefined;
  c.shown = { ahead, unsure, Steps: client.Steps, actors: new Map(), of: new Map(), sets: new Map(), known: new Map(), turns: Math.ceil(client.Actors.length / 256) }; // a client's film looks at 256 actors that it doesn't own in turn
  client.Actors.forEach((a, i) => {
    const start = client.Steps[a.From], stop = a.To < 0 ? Infinity : client.Steps[a.To];
    const n = stop < film.Steps[0] ? undefined : (byID.get(a.ID) || []).findLast(n => from0(film.Actors[n]) <= start + 1);
    c.shown.of.set(i, n === undefined ? -1 : n);
    if (n !== undefined && start < to0(film.Actors[n]) + 5000) c.shown.actors.set(n, [...(c.shown.actors.get(n) || []), a]);
  });
  for (const [i, units, at] of from.Set) {
    const n = c.shown.of.get(i);
    if (!c.shown.sets.has(n)) c.shown.sets.set(n, []);
    c.shown.sets.get(n).push({ at: at - ahead, units });
  }
  for (const n of client.Notes) film.Notes.push({ At: n.At - ahead, Conn: c.ID, Text: "the client: " + n.Text, Actor: n.Actor < 0 ? -1 : c.shown.of.get(n.Actor), Field: n.Field });
  film.Notes.sort((a, b) => a.At - b.At);
  for (const call of from.Calls) c.Calls.push({ ...call, At: call.At - ahead, Actor: c.shown.of.get(call.Actor), AtClient: true, Packet: undefined });
  c.Calls.sort((a, b) => a.At - b.At);
  conn = c;
  return "";
}

// shownAt is an actor as a connection's client showed it at a time, and the client's frame; null when it didn't, or its film isn't there.
function shownAt(c, n, time) {
  const s = c && c.shown;
  if (!s || !s.Steps.length || time < s.Steps[0]) return null;
  const step = last(s.Steps, time, same), a = (s.actors.get(n) || []).find(a => exists(a, step));
  return a ? { a, step } : null;
}

// lastSet is when a client's world last set a part to a value that came, up to a time; undefined when its film doesn't have that.
function lastSet(c, n, p, time) {
  const s = c.shown, units = unitsOf(film.Actors[n], p), key = n + " " + units;
  if (!s.known.has(key)) s.known.set(key, (s.sets.get(n) || []).filter(r => overlap(r.units, units)).map(r => r.at));
  const list = s.known.get(key);
  return list[last(list, time, same)];
}

const recordsOf = (c, n, p) => known(c, n, p).records;

// unitsOf is the units of a part; an actor's place has those of the fields that are drawn for it.
function unitsOf(a, p) {
  if (p.Units) return p.Units;
  if (!a.placeUnits) {
    let all = 0n;
    for (const other of a.Parts) if (/(^|\.)[XYZxyz]$/.test(other.Name)) all |= BigInt("0x" + (other.Units || "0"));
    a.placeUnits = all.toString(16);
  }
  return a.placeUnits;
}

// ended is the record that has closed an actor's channel by a time at which that is known to have come, if the client then doesn't have the actor; else undefined.
function ended(c, n, time) {
  let list = index(c).turned.get(n);
  if (!list) {
    list = [];
    for (const r of c.byActor.get(n) || []) {
      const k = c.Sent[r.Packet];
      // A copy of a bunch changes nothing.
      if ((r.Opens || r.Closes) && arrived(k) && !list.some(o => o.r.Seq === r.Seq && o.r.Opens === r.Opens && k.At < c.Sent[o.r.Packet].At + 10000)) list.push({ r, at: arrival(k) });
    }
    c.turned.set(n, list.sort((a, b) => a.at - b.at));
  }
  const i = last(list, time, e => e.at), r = i < 0 ? undefined : list[i].r;
  return r && r.Closes && r.Waited !== "Dormancy" ? r : undefined;
}

// over reports whether a connection has ended by a time.
const over = (c, time) => c.Ended > 0 && time >= c.Ended;

// holds reports whether a connection has an actor, or is being sent it, at a time, as far as the film has that: by what opened and closed its channel. One of
// which something was sent, and no opening, had its channel opened before the film.
function holds(c, n, time) {
  const list = (index(c).byActor.get(n) || []), turns = list.filter(r => r.Opens || r.Closes && r.Waited !== "Dormancy"), sent = r => c.Sent[r.Packet].At;
  const before = turns.filter(r => sent(r) <= time).pop();
  return before ? before.Opens : turns.length ? turns[0].Closes : list.length > 0;
}

// stays reports a change of a part that is sent when a channel opens only, if a connection had the actor by then and it wasn't opened anew since: it keeps what it had.
function stays(c, n, p, i) {
  const from = film.Steps[p.At[i]];
  return i > 0 && p.Only === "initial" && holds(c, n, from) && !recordsOf(c, n, p).some(r => film.Steps[stepOf(c, r)] >= from && c.Sent[r.Packet].At <= t);
}

// unsaid is when the film found that the game had set a part and that nobody is told, if that is so at a time; else undefined.
function unsaid(n, p, time) {
  const i = film.Unsaid.findLastIndex(([actor, , at]) => at <= time && (actor === n || actor < 0)), [actor, units] = film.Unsaid[i] || [-1];
  if (actor < 0 || !p.Units || !overlap(units, p.Units)) return undefined;
  let at = film.Unsaid[i][2];
  for (let k = i; k >= 0 && film.Unsaid[k][0] >= 0; k--) {
    if (film.Unsaid[k][0] !== n) continue;
    if (!overlap(film.Unsaid[k][1], p.Units)) break;
    at = film.Unsaid[k][2];
  }
  return at;
}

// waits is why an actor, or a part p of it, was kept from a connection at a time, as it was found then: for all connections, or for this one; undefined when nothing was
// found. Some is that it is about some units only. What is about the whole actor comes first.
function waits(c, n, p, time) {
  for (const of of c ? [c, film] : [film]) {
    if (!of.waitsOf) {
      of.waitsOf = new Map();
      for (const w of of.Waits || []) if (!of.waitsOf.get(w[0])?.push(w)) of.waitsOf.set(w[0], [w]);
    }
    for (const some of [0, 1]) {
      const [, , units, found, , reason] = (of.waitsOf.get(n) || []).findLast(w => w[1] === some && w[3] <= time) || [];
      if (reason && (units === "0" || p && overlap(units, unitsOf(film.Actors[n], p)))) return { some: some === 1, all: of === film, reason, text: reason + " (found at " + seconds(found) + ")" };
    }
  }
}

// came is the times at which a client's world set a part to values that came, in the film of a client that is shown alone.
function came(c, n, p) {
  const units = unitsOf(film.Actors[n], p), key = "came " + n + " " + units;
  if (!index(c).known.has(key)) c.known.set(key, c.Set.filter(([i, u]) => i === n && overlap(u, units)).map(([, , at]) => at));
  return c.known.get(key);
}

// cameAs is how a change of a part came about, in the film of a client that is shown alone.
function cameAs(c, n, p, i) {
  const step = p.At[i], list = came(c, n, p), at = list[last(list, film.Steps[step] + 0.5, same)], turns = Math.ceil(film.Actors.length / 256);
  if (at > (film.Steps[step - turns] ?? -Infinity)) return "came at " + seconds(at);
  if (p.Drawn) return p.Drawn === "predict" ? "the client's prediction" : "interpolated";
  return i ? "the client's own code set it" : "it had it when it appeared in the film";
}

// had is the Step whose value of a part a connection had at a time, by its acks; -1 if none is known, or if it doesn't have the actor any more.
function had(c, n, p, time) {
  if (over(c, time) || ended(c, n, time)) return -1;
  const got = known(c, n, p).got, i = last(got, time, g => g.at);
  return i < 0 ? -1 : got[i].step;
}

// place is the parts of an actor that say where it is.
function place(a) {
  if (a.place) return a.place;
  const find = names => names.map(n => a.Parts.find(p => p.Name === n)).find(p => p);
  const ends = end => a.Parts.find(p => p.Name.toLowerCase().endsWith("." + end));
  return a.place = [find(["(x)", "X", "x"]) || ends("x"), find(["(y)", "Y", "y"]) || ends("y")];
}

function where(a, step) {
  const [x, y] = place(a).map(p => p && at(p, step));
  return typeof x === "number" && typeof y === "number" ? [x, y] : null;
}

let bounds = null;
function area() {
  if (bounds) return bounds;
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const a of film.Actors) {
    const [px, py] = place(a);
    if (!px || !py) continue;
    for (const v of px.Of) if (typeof v === "number") { x0 = Math.min(x0, v); x1 = Math.max(x1, v); }
    for (const v of py.Of) if (typeof v === "number") { y0 = Math.min(y0, v); y1 = Math.max(y1, v); }
  }
  if (x0 > x1) [x0, x1, y0, y1] = [0, 1, 0, 1];
  const pad = Math.max(x1 - x0, y1 - y0, 1) * 0.05;
  return bounds = [x0 - pad, x1 + pad, y0 - pad, y1 + pad];
}

function canvas(id, height) {
  const c = el(id), scale = devicePixelRatio || 1, width = c.clientWidth;
  c.style.height = height + "px";
  c.width = width * scale;
  c.height = height * scale;
  const g = c.getContext("2d");
  g.scale(scale, scale);
  g.font = "11px system-ui, sans-serif";
  return [g, width, height];
}

const hue = n => "hsl(" + (n * 137.5) % 360 + " 60% 50%)";

let dots = [];
function drawMap() {
  const box = el("map").clientWidth, [x0, x1, y0, y1] = area();
  const size = Math.min(box / (x1 - x0), 520 / (y1 - y0));
  const [g, width, height] = canvas("map", Math.max(120, Math.round((y1 - y0) * size)));
  const left = (width - (x1 - x0) * size) / 2, to = ([x, y]) => [left + (x - x0) * size, (y - y0) * size];
  g.strokeStyle = css("line");
  g.strokeRect(left, 0, (x1 - x0) * size, height);
  const step = stepAt(t);
  dots = [];
  film.Actors.forEach((a, n) => {
    if (!exists(a, step)) return;
    const truth = where(a, step);
    if (!truth) return;
    const [x, y] = to(truth);
    dots.push({ x, y, n });
    const c = conn && had(conn, n, place(a)[0], t);
    if (conn && c >= a.From) {
      const seen = where(a, c);
      if (seen) {
        const [cx, cy] = to(seen);
        g.strokeStyle = css("client");
        g.beginPath(); g.moveTo(x, y); g.lineTo(cx, cy); g.stroke();
        g.beginPath(); g.arc(cx, cy, 6, 0, 7); g.stroke();
      }
    }
    const drawn = shownAt(conn, n, t), drawnAt = drawn && where(drawn.a, drawn.step);
    if (drawnAt) {
      const [sx, sy] = to(drawnAt);
      g.strokeStyle = css("shown");
      g.strokeRect(sx - 5, sy - 5, 10, 10);
    }
    g.fillStyle = hue(a.Class);
    g.beginPath(); g.arc(x, y, n === actor ? 6 : 4, 0, 7); g.fill();
  });
  drawCross(g, to);
  const picked = dots.find(d => d.n === actor);
  if (!picked) return;
  const name = nameOf(film.Actors[actor]), wide = g.measureText(name).width, begins = picked.x + 14 + wide > width ? picked.x - 14 - wide : picked.x + 14;
  g.strokeStyle = css("text");
  g.beginPath(); g.arc(picked.x, picked.y, 9, 0, 7); g.stroke();
  g.fillStyle = css("box"); // above what is drawn there
  g.fillRect(begins - 3, picked.y - 8, wide + 6, 15);
  g.fillStyle = css("text");
  g.fillText(name, begins, picked.y + 4);
}

// drawCross draws where the connection looks from.
function drawCross(g, to) {
  const from = viewpoint(conn, t);
  if (!from) return;
  const [x, y] = to(from.at);
  g.strokeStyle = css("text");
  g.beginPath(); g.moveTo(x - 8, y); g.lineTo(x + 8, y); g.moveTo(x, y - 8); g.lineTo(x, y + 8); g.stroke();
}

const nameOf = a => film.Classes[a.Class].Name + " " + a.ID;
const nameOfConn = c => c.Name || "connection " + c.ID;

const lineX = (time, width) => (time - film.Steps[0]) / Math.max(1, film.Steps[film.Steps.length - 1] - film.Steps[0]) * width;

function drawLine() {
  const [g, width, height] = canvas("line", 64);
  if (conn) {
    for (const p of conn.Sent) {
      g.fillStyle = css(["flying", "acked", "lost"][p.Fate]);
      const h = Math.max(3, Math.min(1, p.Bytes / 1200) * 30) + (p.Fate === 2 ? 10 : 0);
      g.fillRect(lineX(p.At, width), 46 - h, 1.5, h);
    }
  }
  g.fillStyle = css("note");
  for (const n of merged()) g.fillRect(lineX(n.At, width) - 1, 0, 3, 10);
  g.fillStyle = css("dim");
  const from = film.Steps[0] / 1000, to = film.Steps[film.Steps.length - 1] / 1000, every = Math.max(1, Math.ceil((to - from) / 12));
  for (let s = Math.ceil(from); s <= to; s += every) g.fillText(s + " s", Math.max(0, lineX(s * 1000, width) - 8), 60);
  g.fillStyle = css("server");
  g.fillRect(lineX(t, width) - 1, 0, 2, 50);
}

function rows(id, list, cells, click) {
  const body = el(id).tBodies[0];
  while (body.rows.length > list.length) body.deleteRow(-1);
  list.forEach((item, i) => {
    const tr = body.rows[i] || body.insertRow();
    tr.onclick = click ? () => click(item) : null;
    cells(item, tr).forEach((c, k) => {
      const td = tr.cells[k] || tr.insertCell(), text = typeof c === "object" ? c.text : String(c);
      if (td.textContent !== text) td.textContent = text;
      const cls = typeof c === "object" ? c.cls : "";
      if (td.className !== cls) td.className = cls;
    });
  });
}

const left = text => ({ text: String(text), cls: "l" });
const value = v => v === undefined ? "-" : typeof v === "number" ? String(Math.round(v * 1e4) / 1e4) : v;

// why says why a connection has another value of a part than the server, in words, and how bad that is: "apart" when nothing that is on its way mends it, "late" when it is on
// its way, "kept" when its condition keeps it back, and "" when the connection isn't to have it, or it isn't known what it has.
function why(c, n, p, step) {
  const i = last(p.At, step, same), changed = p.At[i], from = film.Steps[changed], list = recordsOf(c, n, p);
  if (i < 0) return ["", ""];
  for (let k = last(list, t, r => c.Sent[r.Packet].At); k >= 0 && c.Sent[list[k].Packet].At >= from; k--) if (stepOf(c, list[k]) >= changed) return onItsWay(c, list[k]);
  const way = (index(c).byActor.get(n) || []).findLast(r => (r.Opens || r.Closes) && c.Sent[r.Packet].At <= t);
  if (way && way.Closes && way.Waited !== "Dormancy") return [closed(c, way), ""];
  const until = i + 1 < p.At.length ? p.At[i + 1] : Infinity, later = list.find(r => c.Sent[r.Packet].At > t && stepOf(c, r) >= changed && stepOf(c, r) < until);
  if (later) return ["set at " + seconds(from) + ", sent at " + seconds(c.Sent[later.Packet].At) + (later.Waited ? " (" + later.Waited + ")" : ""), "late"];
  return unsentChange(c, n, p, i);
}

// unsentChange is why for a change of which the film has no record.
function unsentChange(c, n, p, i) {
  const changed = p.At[i], from = film.Steps[changed], until = i + 1 < p.At.length ? film.Steps[p.At[i + 1]] : Infinity, list = recordsOf(c, n, p);
  const cond = condition(film.Actors[n], p), only = cond ? "; its condition is " + cond : "", opening = (index(c).byActor.get(n) || []).find(r => r.Opens);
  if (p.Drawn === "predict" && !list.length && index(c).byActor.has(n) && (cond === "simulated" || cond === "skipowner"))
    return ["this connection's player predicts it, and gets corrections, not values" + only, "kept"];
  if (opening && cond && !list.length) return ["the opening of its channel, in packet " + c.Sent[opening.Packet].ID + ", had no " + p.Name + only + ", which this connection doesn't meet", "kept"];
  if (stays(c, n, p, i)) return ["set at " + seconds(from) + ", and not sent" + only + ": a change after the opening is never sent", "apart"];
  if (unknown(c, from)) return [unknown(c, from), ""];
  if (!index(c).byActor.has(n)) return [unsent(c, n), ""];
  if (changed === 0 && !opening) {
    const g = known(c, n, p).got[0];
    return ["its channel was opened before the film began, so what it had then isn't known: " + (g ? "known from " + seconds(g.at) + " on, by packet " + g.packet.ID : "nothing of " + p.Name + " was sent since" + only), ""];
  }
  if (until < Infinity) return ["not sent: a newer value came " + (until - from).toFixed(0) + " ms later", "late"];
  const kept = waits(c, n, p, t);
  return ["set at " + seconds(from) + ", and not sent in this film" + only + (kept && !kept.some ? ": " + kept.text : ""), over(c, from) ? "" : "apart"];
}

// condition is a part's condition, "" for none; a place has that of the fields that are drawn for it, when they have one.
function condition(a, p) {
  if (p.Units) return p.Only || "";
  const list = a.Parts.filter(other => overlap(other.Units, unitsOf(a, p))).map(other => other.Only || "");
  return list.length && list.every(x => x === list[0]) ? list[0] : "";
}

// closed says what closed an actor's channel.
function closed(c, r) {
  const k = c.Sent[r.Packet], n = r.Actor, s = r.Waited === "Relevancy" ? sight(c, n, t) : null, why = { Destroyed: "it was destroyed", Relevancy: "it isn't relevant to this connection any more", TearOff: "it was torn off, and is the client's own", Dormancy: "it sleeps" };
  return "its channel was closed at " + seconds(k.At) + ", in packet " + k.ID + (why[r.Waited] ? ": " + why[r.Waited] : "") + (s && s.away > s.within ? "; it is now " + s.text : "");
}

// unknown says of a moment of which a film doesn't have what was sent to a connection that it is so, else "".
const unknown = (c, time) => c.From > time + 0.5 ? "not known: the film has what was sent to this connection from " + seconds(c.From) + " on" : "";

const explain = "Explain, on the inspector's page, says which while the game runs";

// unsent says why nothing of an actor was sent in this film, as far as the film has it.
function unsent(c, n) {
  const s = sight(c, n, t);
  if (unknown(c, t)) return unknown(c, t);
  if (s && s.away > s.within) return "nothing of it was sent in this film: not relevant: " + s.text;
  const kept = waits(c, n, null, t);
  if (kept) return "nothing of it was sent in this film: " + kept.text;
  const old = film.Actors[n].From === 0 && !(c.Began > film.Steps[0]) ? "nothing of it was sent in this film: its channel was opened before the film began and nothing has changed since, or it isn't relevant to this connection, " : "nothing of it was sent in this film: not relevant to this connection, ";
  return old + "of a class that the client lacks, dormant, or without a turn yet; " + (s ? s.text + "; " : "") + explain;
}

// viewpoint is where a connection looks from at a time, and since when; null when that isn't known.
function viewpoint(c, time) {
  let i = c && c.Views ? last(c.Views, time, v => v[0]) : -1;
  if (i < 0 || !c.Views[i][1]) return null;
  const same = (a, b) => a[1] === b[1] && a[2] === b[2] && a[3].every((x, k) => x === b[3][k]);
  const [, kind, n, at] = c.Views[i];
  while (i > 0 && same(c.Views[i - 1], c.Views[i])) i--;
  const target = i > 0 && c.Views[i - 1][1] === 2 ? film.Actors[c.Views[i - 1][2]] : null, died = target && target.To >= 0 && Math.abs(film.Steps[target.To] - c.Views[i][0]) < 200;
  if (kind === 1) return { at, text: "the viewpoint (" + at.map(value).join(", ") + "), which has stood there since " +
    (died ? nameOf(target) + ", its view target, was destroyed at " : "") + seconds(c.Views[i][0]) + (i ? "" : " at least") };
  const a = film.Actors[n], to = a && placeOf(a, stepAt(time));
  return to ? { at: to, text: "the viewpoint, " + nameOf(a) } : null;
}

// placeOf is an actor's Location, or null.
function placeOf(a, step) {
  const list = ["(x)", "(y)", "(z)"].map(name => a.Parts.find(p => p.Name === name)).map(p => p && at(p, step));
  return list.every(v => typeof v === "number") ? list : null;
}

// sight is how far an actor is from where a connection looks from, and from where on it is relevant; null when one of these isn't known.
function sight(c, n, time) {
  const a = film.Actors[n], from = viewpoint(c, time), to = placeOf(a, stepAt(time));
  if (!from || !to || !a.Seen) return null;
  const away = Math.hypot(...to.map((x, k) => x - from.at[k]));
  return { away, within: a.Seen, text: away.toFixed(1) + " away from " + from.text + "; it is seen within " + value(a.Seen) };
}

// onItsWay says what became of a record at the moment that is shown, of which the client hasn't set the values, and how bad that is.
function onItsWay(c, r) {
  const k = c.Sent[r.Packet], what = r.Opens ? "the opening of its channel, in packet " : r.Reliable ? "a reliable bunch of its channel, in packet " : "packet ";
  if (k.Got !== undefined && k.Got <= t) return [what + k.ID + ", came at " + seconds(k.Got) + ", and isn't set", "apart"];
  if (k.Got === undefined && k.Fate === 2 && k.Told <= t) return [what + k.ID + " was lost; it is to be sent again", "apart"];
  if (k.Got === undefined && k.Fate === 2) return [what + k.ID + " is lost, which isn't known before " + seconds(k.Told), "apart"];
  return ["in flight: " + what + k.ID, "late"];
}

// local says what a client itself has done to a part q of an actor that it shows, or "" when it shows what came. came is that value.
function local(c, n, p, q, shown, came) {
  const s = c.shown, v = at(q, shown.step), look = s.Steps[shown.step];
  if (v === came) return "";
  if (p.Drawn) return p.Drawn === "predict" ? "the client shows its prediction" : "the client draws it interpolated: as it was some time before";
  const set = lastSet(c, n, p, look), i = last(q.At, shown.step, same), since = s.Steps[q.At[i]], got = known(c, n, p).got, newest = got[last(got, look, g => g.at)];
  if (set === undefined && came === undefined) return i > 0 ? "nothing of it came in the client's film: the client's own code set it, at " + seconds(since) : "";
  if (p.Of.slice(newest ? Math.max(0, last(p.At, newest.step, same)) : 0).includes(v)) return ""; // too large for a record: it came in a reliable bunch
  // An opening doesn't bring values that are zero: the client's world sets nothing then.
  const how = [newest && "packet " + newest.packet.ID + " brought " + value(came), set && "set at " + seconds(set)].filter(x => x).join(", ");
  const first = set === undefined ? shown.a.From : last(s.Steps, set - 0.001, same) + 1;
  if (shown.step - first < s.turns - 1 && q.At[i] < first) return how + "; the client's film hasn't looked at the actor since";
  if (q.At[i] > first) return how + "; the client's own code has set " + value(v) + " since, at " + seconds(since);
  return how + "; the client's own code had set " + value(v) + " by the end of that frame";
}

// missing says why a client doesn't show an actor, and how bad that is, as why does.
function missing(c, n) {
  if (over(c, t)) return ["the connection ended at " + seconds(c.Ended) + ": " + c.Why + (c.Heard ? "; a packet last came at " + seconds(c.Heard) : ""), ""];
  const list = (index(c).byActor.get(n) || []).filter(r => c.Sent[r.Packet].At <= t), r = list.findLast(r => r.Opens || r.Closes), k = r && c.Sent[r.Packet];
  const until = ((c.shown && c.shown.actors.get(n)) || []).filter(a => a.To >= 0 && c.shown.Steps[a.To] <= t).map(a => c.shown.Steps[a.To]).pop();
  if (!list.length) {
    const later = (index(c).byActor.get(n) || []).find(r => r.Opens);
    return [later ? "its channel is opened at " + seconds(c.Sent[later.Packet].At) : unsent(c, n), ""];
  }
  if (r && r.Closes) return [closed(c, r), ""];
  if (r && !(k.Got <= t)) return onItsWay(c, r);
  const came = r ? "the opening of its channel, in packet " + k.ID + ", came at " + seconds(k.Got) : "its channel was opened before this film";
  return [came + (until !== undefined ? "; the client had it until " + seconds(until) : "; the client's film doesn't have it: was its class registered before the client's recorder was made?"), "apart"];
}

// gone reports whether a connection's client doesn't have an actor: its film has the moment, and not the actor in it; without a film, by what closed its channel.
function gone(c, n) {
  if (!c || film.Client) return false;
  if (over(c, t)) return true;
  const s = c.shown, filmed = s && s.Steps.length && s.Steps[0] <= t && t <= s.Steps[s.Steps.length - 1];
  return Boolean(filmed ? !shownAt(c, n, t) : ended(c, n, t));
}

// compared is how a part of an actor stands at a connection: what the server has, what the connection has by its acks, what its client showed, why these differ, and how bad
// that is, as why says it.
function compared(n, p, step, shown, lost) {
  const s = at(p, step), k = conn ? had(conn, n, p, t) : -1, c = k >= film.Actors[n].From ? at(p, k) : undefined, q = shown && shown.a.Parts.find(q => q.Name === p.Name), v = q && at(q, shown.step);
  const untold = unsaid(n, p, t), texts = [];
  let bad = "";
  const add = (text, how) => { if (text) texts.push(text); if (worse.indexOf(how) > worse.indexOf(bad)) bad = how; };
  if (untold !== undefined) add("at " + seconds(untold) + " the game was found to have set another value, and nobody is told: what the server has here is what it was told last", "apart");
  if (lost) {
    add(p === film.Actors[n].Parts[0] ? lost[0] : "", lost[1]);
    return { s, c, q, v, bad, texts };
  }
  const kept = conn && waits(conn, n, p, t);
  if (kept && kept.some) add(kept.text, kept.all ? "kept" : ""); // switched off; or a reference to what isn't there: the client has its number
  if (!conn || v === s || c === s && !q) return { s, c, q, v, bad, texts };
  const end = q && ended(conn, n, t); // a client keeps what was torn off
  if (end) {
    add(closed(conn, end), "");
    return { s, c, q, v, bad, texts };
  }
  const own = q ? local(conn, n, p, q, shown, c) : "", way = c === s ? ["", ""] : why(conn, n, p, step);
  if (p.Drawn && q && way[1] === "kept") { // a player's own: it has no other values
    add(way[0], way[1]);
    return { s, c, q, v, bad, texts };
  }
  add(own, own && !p.Drawn ? "apart" : "");
  add(own && way[0] ? "of the newest: " + way[0] : way[0], way[1]);
  return { s, c, q, v, bad, texts };
}

// worse is how bad a difference is, from not to most.
const worse = ["", "kept", "late", "apart"];

function showActors() {
  const step = stepAt(t);
  let list = film.Actors.map((a, n) => ({ a, n })).filter(({ a }) => exists(a, step));
  el("count").textContent = list.length;
  const i = conn && conn.Views ? last(conn.Views, t, v => v[0]) : -1, from = i < 0 ? -1 : conn.Views[i][2]; // the connection's own actor comes first
  list = [...list.filter(({ n }) => n === from), ...list.filter(({ n }) => n !== from)];
  if (filter) list = list.filter(({ a }) => (nameOf(a) + " " + a.Parts.map(p => value(at(p, step))).join(" ")).toLowerCase().includes(filter));
  rows("actors", list.slice(0, 300), ({ a, n }, tr) => {
    const xy = where(a, step), c = conn ? had(conn, n, place(a)[0] || a.Parts[0], t) : -1, seen = c >= a.From ? where(a, c) : null;
    const lost = gone(conn, n) ? missing(conn, n) : null, shown = shownAt(conn, n, t);
    let bad = lost ? lost[1] : "";
    if (!film.Client) for (const p of a.Parts) if (bad !== "apart" && p.Units) {
      const more = compared(n, p, step, shown, lost).bad;
      if (worse.indexOf(more) > worse.indexOf(bad)) bad = more;
    }
    tr.className = (n === actor ? "picked " : "") + (bad === "kept" ? "" : bad);
    return [left(film.Classes[a.Class].Name), left(a.ID), xy ? xy[0].toFixed(2) : "", xy ? xy[1].toFixed(2) : "", lost ? "not there" : xy && seen ? Math.hypot(xy[0] - seen[0], xy[1] - seen[1]).toFixed(2) : ""];
  }, ({ n }) => { actor = n; part = ""; show(); });
}

function showFields() {
  const a = film.Actors[actor], step = stepAt(t);
  el("which").textContent = a ? nameOf(a) + (exists(a, step) ? "" : ", which isn't there now") : "Choose an actor";
  const reasons = a && !film.Client ? [null, ...a.Parts].map(p => waits(conn, actor, p, t)).filter(w => w && !(conn && over(conn, t))).map(w => (w.all ? "" : nameOfConn(conn) + ": ") + w.text) : [];
  el("reason").textContent = [...new Set(reasons)].join("; ");
  const list = a && exists(a, step) ? a.Parts : [], shown = shownAt(conn, actor, t), lost = list.length && gone(conn, actor) ? missing(conn, actor) : null;
  if (a && !a.Parts.some(p => p.Name === part)) part = a.Parts.length ? a.Parts[0].Name : "";
  const made = list.map(p => {
    if (film.Client) {
      const list = conn ? came(conn, actor, p) : [], i = last(list, t, same), change = last(p.At, step, same);
      return { p, bad: "", cells: [left(p.Name), left(value(at(p, step))), left(i < 0 ? "not in this film" : seconds(list[i])), left(""), left(conn && change >= 0 ? cameAs(conn, actor, p, change) : "")] };
    }
    const { s, c, q, v, bad, texts } = compared(actor, p, step, shown, lost);
    return { p, bad, cells: [left(p.Name), left(value(s)), left(!conn ? "" : c !== undefined ? value(c) : lost && !conn.shown ? "not there" : bad === "kept" ? "not sent" : "not known"),
      left(q ? value(v) : conn && conn.shown ? "not there" : ""), left(texts.join("; "))] };
  });
  rows("fields", worse.toReversed().flatMap(bad => made.filter(r => r.bad === bad)), ({ p, bad, cells }, tr) => {
    tr.className = (p.Name === part ? "picked " : "") + bad;
    return cells;
  }, ({ p }) => { part = p.Name; show(); });
}

// fate is what became of a packet, in words.
function fate(k) {
  const came = k.Got !== undefined ? "came at " + seconds(k.Got) + ", " : "";
  if (k.Fate === 0) return came + "its fate isn't known";
  return came + (k.Fate === 1 ? "acked at " : came ? "taken for lost at " : "lost, known at ") + seconds(k.Told);
}

// way is what became of a change of a part.
function way(p, i) {
  if (!conn) return "";
  if (film.Client) return cameAs(conn, actor, p, i);
  const from = film.Steps[p.At[i]], until = i + 1 < p.At.length ? film.Steps[p.At[i + 1]] : Infinity, told = [];
  let waited = "";
  for (const r of recordsOf(conn, actor, p)) {
    const k = conn.Sent[r.Packet], of = film.Steps[stepOf(conn, r)];
    if (of < from || of >= until) continue;
    if (!told.length) waited = (k.At - from > 1 ? "waited " + (k.At - from).toFixed(0) + " ms" + (r.Waited ? " (" + r.Waited + ")" : "") + ", " : "");
    const again = (r.Opens ? "with the opening of its channel, " : r.Reliable ? "with a reliable bunch of its channel, " : "") + (told.length ? "again in packet " : "in packet ");
    told.push(again + k.ID + " at " + seconds(k.At) + ": " + fate(k));
  }
  return told.length ? waited + told.join("; ") : unsentChange(conn, actor, p, i)[0];
}

// curves is what is drawn of a part: colors, and the times and values of what each end had, undefined for nothing.
function curves(a, p) {
  const end = film.Steps[film.Steps.length - 1], of = (steps, p) => p.At.map((s, i) => [steps[s], p.Of[i]]);
  const list = [["server", [...of(film.Steps, p), ...(a.To < 0 ? [] : [[film.Steps[a.To]]])]]];
  if (!conn || film.Client) return list;
  for (const a of conn.shown ? conn.shown.actors.get(actor) || [] : []) {
    const q = a.Parts.find(q => q.Name === p.Name);
    if (q) list.push(["shown", [...of(conn.shown.Steps, q), [a.To < 0 ? conn.shown.Steps[conn.shown.Steps.length - 1] : conn.shown.Steps[a.To]]]]);
  }
  const got = known(conn, actor, p).got.map(g => [g.at, at(p, g.step)]);
  for (const [i, e] of (index(conn).turned.get(actor) || []).entries()) if (ended(conn, actor, e.at)) {
    const next = index(conn).turned.get(actor).slice(i + 1).find(o => o.r.Opens);
    for (const g of got) if (g[0] > e.at && (!next || g[0] < next.at)) g[1] = undefined;
    got.push([e.at]);
  }
  if (conn.Ended) got.push([conn.Ended]);
  list.push(["client", got.sort((a, b) => a[0] - b[0])]);
  return list.map(([color, points]) => [color, points.filter(([at]) => at <= end && !(color === "client" && over(conn, at - 0.001)))]);
}

function showValues() {
  const a = film.Actors[actor], p = a && a.Parts.find(p => p.Name === part);
  el("field").firstChild.textContent = p ? p.Name + (conn ? ", and its way to " + nameOfConn(conn) : "") + " " : "";
  el("ends").hidden = !p || !conn || film.Client;
  const [g, width, height] = canvas("values", 160);
  rows("ways", [], () => []);
  if (!p) return;
  const from = t - 2000, to = t + 1000, end = film.Steps[film.Steps.length - 1], x = time => (time - from) / (to - from) * width;
  const lines = curves(a, p), seen = [];
  for (const [, points] of lines) points.forEach(([at, v], i) => { if (typeof v === "number" && at <= to && (i + 1 === points.length || points[i + 1][0] >= from)) seen.push(v); });
  const lo = Math.min(...seen), hi = Math.max(...seen), y = v => hi > lo ? height - 24 - (v - lo) / (hi - lo) * (height - 40) : height / 2;
  if (seen.length) {
    g.fillStyle = css("dim");
    g.fillText(value(hi), 2, hi > lo ? 12 : height / 2 - 6);
    if (hi > lo) g.fillText(value(lo), 2, height - 14);
    for (const [color, points] of lines) {
      g.strokeStyle = css(color);
      g.lineWidth = 1.5;
      g.beginPath();
      let before;
      for (const [time, v] of [...points, [end]]) {
        if (typeof before === "number") g.lineTo(x(time), y(before));
        if (typeof v === "number" && typeof before !== "number") g.moveTo(x(time), y(v));
        if (typeof v === "number") g.lineTo(x(time), y(v));
        before = v;
      }
      g.stroke();
    }
  }
  if (conn) for (const r of recordsOf(conn, actor, p)) {
    const k = conn.Sent[r.Packet];
    if (k.At < from || k.At > to) continue;
    g.fillStyle = css(["flying", "acked", "lost"][k.Fate]);
    g.fillRect(x(k.At), height - 10, 2, 10);
  }
  g.fillStyle = css("text");
  g.fillRect(x(t), 0, 1, height);
  const here = last(p.At, stepAt(t), same), first = Math.max(0, here - 12), near = p.At.slice(first, here + 8).map((s, i) => ({ at: film.Steps[s], i: first + i }));
  rows("ways", near, (w, tr) => {
    tr.className = w.i === here ? "picked" : w.at > t ? "after" : "";
    return [seconds(w.at), left(value(p.Of[w.i])), left(way(p, w.i))];
  }, w => go(w.at));
}

// callWay is a call's way, in words, and whether all its packets so far were lost.
function callWay(c, call) {
  if (call.AtClient) return [call.Came ? "came to " + nameOfConn(c) + (call.Refused ? ", where it doesn't run: " + call.Refused : "") : nameOfConn(c) + " made it", call.Refused !== ""];
  if (call.Came) return ["came from " + (film.Client ? "the server" : nameOfConn(c)) + (call.Refused ? ", and doesn't run: " + call.Refused : ""), call.Refused !== ""];
  if (call.Packet === undefined) return ["its packet isn't in the film", false];
  const tries = [call.Packet];
  if (call.Reliable) {
    const records = index(c).byActor.get(call.Actor) || [], numbers = new Set(records.filter(r => r.Packet === call.Packet && r.Seq !== undefined).map(r => r.Seq));
    for (const r of records) if (r.Packet > call.Packet && numbers.has(r.Seq) && c.Sent[r.Packet].At < call.At + 10000) tries.push(r.Packet);
  }
  const told = tries.map(i => c.Sent[i]).map((k, i) => (i ? "again in packet " : "in packet ") + k.ID + " at " + seconds(k.At) + ": " +
    fate(k));
  const lost = tries.every(i => !arrived(c.Sent[i]) && c.Sent[i].Fate === 2);
  return [(call.Reliable ? "reliable, " : "unreliable, ") + told.join("; ") + (lost && !call.Reliable ? ", and not sent again" : ""), lost];
}

function showCalls() {
  const own = el("own").checked, list = conn ? conn.Calls.filter(c => (actor < 0 || c.Actor === actor) && (own || !c.Name.startsWith("predict."))) : [];
  const here = last(list, t, c => c.At), near = list.slice(Math.max(0, here - 8), here + 6);
  rows("calls", near, (call, tr) => {
    const [way, lost] = callWay(conn, call), a = film.Actors[call.Actor];
    tr.className = (call === list[here] ? "picked " : call.At > t ? "after " : "") + (lost ? "apart" : "");
    return [seconds(call.At), left(a ? film.Classes[a.Class].Name + " " + a.ID : ""), left(call.Name), left(way)];
  }, call => { if (call.Actor >= 0) { actor = call.Actor; part = ""; } go(call.At); });
}

function showPackets() {
  if (!conn) { el("flying").textContent = ""; el("packets").textContent = "choose a connection"; return; }
  const now = last(conn.Sent, t, p => p.At), list = [];
  for (let i = now; i >= 0 && i > now - 300; i--) {
    const p = conn.Sent[i];
    if (!p.Told || p.Told > t) list.push(p);
  }
  el("flying").textContent = list.length;
  el("packets").replaceChildren(...list.slice(0, 40).map(p => {
    const div = document.createElement("div");
    div.textContent = "packet " + p.ID + ", " + p.Bytes + " bytes, sent " + (t - p.At).toFixed(0) + " ms ago; " + ["its fate isn't known", "will be acked", "will be lost"][p.Fate] + (p.Told ? " at " + seconds(p.Told) : "");
    return div;
  }));
}

// merged is the notes of a connection that the filter lets through, in which an actor's corrections of a second are one.
let notes = { list: [] };
function merged() {
  if (notes.film === film && notes.conn === conn && notes.n === film.Notes.length && notes.filter === noteFilter) return notes.list;
  const list = [], corrections = new Map();
  for (const n of film.Notes) {
    if (conn && n.Conn && n.Conn !== conn.ID) continue;
    if (noteFilter && !(n.Text + " " + (n.Actor < 0 ? "" : nameOf(film.Actors[n.Actor]))).toLowerCase().includes(noteFilter)) continue;
    const same = n.Text.includes("its prediction was corrected"), key = n.Conn + " " + n.Actor + " " + n.Text.startsWith("the client"), first = same && corrections.get(key);
    if (first && n.At < first.At + 1000) {
      first.more++;
      first.until = n.At;
      continue;
    }
    const note = { ...n, more: 0, until: n.At };
    if (same) corrections.set(key, note);
    list.push(note);
  }
  notes = { film, conn, n: film.Notes.length, filter: noteFilter, list };
  return list;
}

function showNotes() {
  const list = merged(), here = last(list, t, n => n.At), first = Math.max(0, here - 20);
  el("notecount").textContent = list.length;
  const made = list.slice(first, first + 50).map(n => {
    const div = document.createElement("div"), c = film.Conns.find(c => c.ID === n.Conn);
    div.textContent = seconds(n.At) + (n.Conn ? " connection " + n.Conn + (c && c.Name ? " " + c.Name : "") + ": " : " ") + n.Text + (n.more ? "; " + n.more + " more of its corrections until " + seconds(n.until) : "");
    div.className = n === list[here] ? "here" : "";
    div.onclick = () => { if (n.Actor >= 0) {
        const parts = film.Actors[n.Actor].Parts, field = n.Field, found = field ? parts.find(p => p.Name === field || p.Name.startsWith(field + ".") || field.startsWith(p.Name + "[")) :
          n.Text.includes("nobody is told") && parts.find(p => unsaid(n.Actor, p, n.At) !== undefined);
        actor = n.Actor;
        part = found ? found.Name : "";
      }
      go(n.At);
    };
    return div;
  }), box = el("notes");
  box.replaceChildren(...made);
  const now = made[here - first];
  if (notes.here !== here) box.scrollTop = now ? now.offsetTop - box.offsetTop - (box.clientHeight - now.clientHeight) / 2 : 0;
  notes.here = here;
}

// initials are notes of values that are sent when a channel opens only, and that changed while a connection had the actor: it keeps what it had.
function initials() {
  const list = [];
  film.Actors.forEach((a, n) => {
    const done = new Set();
    for (const p of a.Parts) for (let i = 1; p.Only === "initial" && i < p.At.length && list.length < 200 && !done.has(p.Units); i++) {
      const at = film.Steps[p.At[i]], of = film.Conns.filter(c => !over(c, at) && holds(c, n, at));
      if (!of.length) continue;
      done.add(p.Units);
      list.push({ At: at, Conn: of.length === 1 ? of[0].ID : 0, Actor: n, Field: p.Name,
        Text: nameOf(a) + ": the game set " + p.Name + " to " + value(p.Of[i]) + ", and clients that have the actor keep the old value: its condition is initial, so it is sent only when the actor's channel opens" });
    }
  });
  return list;
}

// showExplain has the link to the inspector's page that this film is from; a file has none.
function showExplain() {
  const a = film.Actors[actor], q = new URLSearchParams();
  if (conn) q.set("conn", conn.ID);
  if (a) q.set("actors", a.ID);
  el("explain").hidden = film.Client || !conn || !/^http/.test(location.protocol);
  el("explain").href = "./?" + q;
}

// openAt is the moment at which a film is opened: what had it saved, or else its end; when the connection isn't there any more then, the last moment at which it was heard.
function openAt() {
  const end = film.Steps[film.Steps.length - 1];
  let at = film.Cause ? Math.min(film.Cause[0], end) : end;
  if (conn && conn.shown && conn.shown.Steps.length) at = Math.min(at, Math.max(conn.shown.Steps[conn.shown.Steps.length - 1], film.Steps[0]));
  if (conn && over(conn, at)) at = Math.min(conn.Heard || Infinity, conn.Ended - 0.001);
  return film.Steps[Math.max(0, stepAt(at))];
}

function link() {
  const a = film.Actors[actor], q = new URLSearchParams({ t: seconds(t) });
  if (conn) q.set("conn", conn.ID);
  if (a) { q.set("actor", a.ID); q.set("field", part); }
  history.replaceState(null, "", "#" + q);
}

// reveal scrolls a list to its picked row.
function reveal(id) {
  const tr = el(id).querySelector("tr.picked"), box = el(id).parentElement;
  if (!tr) return;
  const r = tr.getBoundingClientRect(), b = box.getBoundingClientRect();
  if (r.top < b.top || r.bottom > b.bottom) box.scrollTop += r.top - b.top - b.height / 2;
}

let drawn = false, picked = "";
function show() {
  if (drawn) return;
  drawn = true;
  requestAnimationFrame(() => {
    drawn = false;
    el("now").textContent = seconds(t) + " s, Step " + stepAt(t) + (conn && conn.shown ? ", " + seconds(t + conn.shown.ahead) + " s by the client's clock" + (conn.shown.unsure ? ", give or take " + Math.ceil(conn.shown.unsure + 10) + " ms" : "") : "");
    try {
      drawLine(); drawMap(); showActors(); showFields(); showValues(); showCalls(); showPackets(); showNotes(); showExplain(); link();
    } catch (e) {
      play(false);
      el("cut").textContent = "a film is damaged, open the page again: " + e;
    }
    if (picked !== actor + " " + part) { reveal("actors"); reveal("fields"); }
    picked = actor + " " + part;
  });
}

function go(time) {
  t = Math.min(film.Steps[film.Steps.length - 1], Math.max(film.Steps[0], time));
  show();
}

const step = n => go(film.Steps[Math.min(film.Steps.length - 1, Math.max(0, stepAt(t) + n))]);

let before = 0;
function frame(now) {
  if (playing) {
    go(t + (now - before) * Number(el("speed").value));
    if (t >= film.Steps[film.Steps.length - 1]) play(false);
    requestAnimationFrame(frame);
  }
  before = now;
}

function play(on) {
  playing = on;
  el("play").textContent = on ? "Stop" : "Play";
  if (on) { before = performance.now(); requestAnimationFrame(frame); }
}

function fromLink() {
  const q = new URLSearchParams(location.hash.slice(1));
  if (q.has("conn")) conn = film.Conns.find(c => String(c.ID) === q.get("conn")) || null;
  if (q.has("t")) t = Number(q.get("t")) * 1000 || film.Steps[0];
  if (q.has("actor")) {
    const now = stepAt(t);
    actor = film.Actors.findIndex(a => a.ID === q.get("actor") && exists(a, now));
    if (actor < 0) actor = film.Actors.findIndex(a => a.ID === q.get("actor"));
    part = q.get("field") || "";
  }
  el("conn").value = conn ? conn.ID : "";
}

async function begin() {
  film = await unpack(el("film").textContent);
  if (!film.Steps.length) { el("span").textContent = "at nothing: nothing was recorded yet"; return; }
  el("cut").textContent = film.Cut || "";
  if (film.Client) document.querySelectorAll("[data-client]").forEach(e => { e.textContent = e.dataset.client; });
  el("span").textContent = "from " + seconds(film.Steps[0]) + " to " + seconds(film.Steps[film.Steps.length - 1]) + " s, " + film.Steps.length + " Steps";
  el("conn").append(new Option("none", ""), ...film.Conns.map(c => new Option(c.ID + (c.Name ? " " + c.Name : ""), c.ID)));
  const sent = film.Conns.filter(c => c.Records.length);
  conn = sent.find(c => !c.Ended) || sent.toSorted((a, b) => b.Ended - a.Ended)[0] || film.Conns[0] || null;
  if (!film.Client) film.Notes = [...film.Notes, ...initials()].sort((a, b) => a.At - b.At);
  const add = client => { const why = join(client); if (why) el("cut").textContent = why; return why; };
  for (const e of document.querySelectorAll("script.client")) add(await unpack(e.textContent));
  if (film.Cause) {
    conn = film.Conns.find(c => c.ID === film.Cause[1]) || conn;
    actor = film.Cause[2];
  }
  t = openAt();
  el("add").parentElement.hidden = film.Client;
  el("add").onchange = async () => {
    el("cut").textContent = film.Cut || "";
    for (const file of el("add").files) {
      const text = /id="film">([^<]*)</.exec(await file.text());
      try { if (!text) throw "it has no film"; add(await unpack(text[1])); } catch (e) { el("cut").textContent = file.name + ": " + e; }
    }
    el("conn").value = conn ? conn.ID : "";
    show();
  };
  el("own").onchange = show;
  fromLink();
  el("conn").onchange = () => { conn = film.Conns.find(c => String(c.ID) === el("conn").value) || null; show(); };
  el("back").onclick = () => step(-1);
  el("forth").onclick = () => step(1);
  el("play").onclick = () => play(!playing);
  el("filter").oninput = e => { filter = e.target.value.toLowerCase(); show(); };
  el("notefilter").oninput = e => { noteFilter = e.target.value.toLowerCase(); show(); };
  const drag = e => { if (e.buttons) { const r = el("line").getBoundingClientRect(); play(false); go(film.Steps[0] + (e.clientX - r.left) / r.width * (film.Steps[film.Steps.length - 1] - film.Steps[0])); } };
  el("line").onpointerdown = e => { el("line").setPointerCapture(e.pointerId); drag(e); };
  el("line").onpointermove = drag;
  el("map").onclick = e => {
    const r = el("map").getBoundingClientRect(), far = d => Math.hypot(d.x - (e.clientX - r.left), d.y - (e.clientY - r.top));
    const best = dots.reduce((b, d) => !b || far(d) < far(b) ? d : b, null);
    if (best && far(best) < 20) { actor = best.n; part = ""; show(); }
  };
  addEventListener("keydown", e => {
    if (e.target.tagName === "INPUT") return;
    if (e.key === ",") step(-1); else if (e.key === ".") step(1); else if (e.key === " ") { e.preventDefault(); play(!playing); }
  });
  addEventListener("resize", show);
  addEventListener("hashchange", () => { fromLink(); show(); });
  show();
}

el("cut").textContent = ""; // the file is whole
begin().catch(e => { el("cut").textContent = "the file is damaged: " + e; });
