"use strict";
(() => {
  const lines = document.querySelector(".text");
  function intoText(li) { // where the text scrolls in a box of its own
    if (lines.scrollHeight > lines.clientHeight) lines.scrollTop = li.offsetTop - lines.offsetTop - lines.clientHeight / 3;
  }
  const found = lines.querySelector(".finding");
  if (found && !location.hash) intoText(found.closest("li"));

  const time = document.getElementById("time");
  if (!time) return;
  const panel = document.getElementById("panel");
  const arrows = JSON.parse(document.getElementById("arrows").textContent);
  const slice = (n) => document.getElementById("e" + n);
  const number = (e) => Number(e.id.slice(1));
  const rows = [...time.querySelectorAll(".lane:not(.axis)")].map((l) => [...l.querySelectorAll(".s")]).filter((r) => r.length);
  const empty = panel.textContent;
  let current = null; // the slice that the keyboard is at
  let pinned = null; // the slice or the line that was chosen

  // --- what belongs together

  const kin = (n) => arrows.filter(([a, b]) => a === n || b === n);
  const lineOf = (l) => document.getElementById("L" + l);

  function clear() {
    for (const e of document.querySelectorAll(".hot, .kin, .lit")) e.classList.remove("hot", "kin", "lit");
    time.classList.remove("chosen");
  }

  function tell(e) {
    const n = number(e);
    const named = (m) => slice(m) && slice(m).title.split(" · ").slice(0, 1)[0] + (slice(m).closest(".cta") === e.closest(".cta") ? "" : " of " + slice(m).closest(".cta").querySelector("summary").textContent);
    const list = (of) => [...new Set(of.filter(Boolean))].slice(0, 4).join(", ");
    const from = list(kin(n).filter(([, b]) => b === n).map(([a]) => named(a)));
    const to = list(kin(n).filter(([a]) => a === n).map(([, b]) => named(b)));
    panel.textContent = e.title + (from ? " — goes on after: " + from : "") + (to ? " — lets go on: " + to : "");
  }

  function show(e) {
    clear();
    e.classList.add("hot");
    for (const [a, b] of kin(number(e))) for (const n of [a, b]) if (slice(n) && slice(n) !== e) slice(n).classList.add("kin");
    for (const p of time.querySelectorAll("path[data-a]")) if (p.dataset.a.split(" ").includes(String(number(e)))) p.classList.add("hot");
    if (e.dataset.l) lineOf(e.dataset.l).classList.add("hot");
    tell(e);
  }

  function showLine(l) {
    clear();
    const of = [...time.querySelectorAll(`.s[data-l="${l}"]`)];
    for (const e of of) e.classList.add("lit");
    lineOf(l).classList.add("hot");
    time.classList.add("chosen");
    panel.textContent = `line ${l}: ${of.length} event${of.length === 1 ? "" : "s"}`;
    return of;
  }

  function restore() {
    if (pinned === null) { clear(); panel.textContent = empty; }
    else if (typeof pinned === "string") showLine(pinned);
    else { show(pinned); time.classList.add("chosen"); }
  }

  function pin(what) { pinned = what; restore(); }

  const inView = (e, where) => e.scrollIntoView({ block: "nearest", inline: where || "nearest" });

  // --- the mouse

  time.addEventListener("mouseover", (ev) => { const e = ev.target.closest(".s"); if (e) { show(e); if (pinned !== null) time.classList.add("chosen"); } });
  time.addEventListener("mouseout", (ev) => { if (ev.target.closest(".s")) restore(); });
  time.addEventListener("click", (ev) => {
    const e = ev.target.closest(".s");
    if (!e) return;
    at(e);
    pin(pinned === e ? null : e);
    if (pinned && e.dataset.l) intoText(lineOf(e.dataset.l));
  });
  lines.addEventListener("click", (ev) => {
    const a = ev.target.closest("a.no") || (ev.target.closest("li") && ev.target.closest("li").querySelector("a.no"));
    if (!a || ev.target.closest("a:not(.no)") || String(getSelection())) return;
    ev.preventDefault();
    pin(pinned === a.dataset.l ? null : a.dataset.l);
    if (pinned) { const first = [...time.querySelectorAll(".s.lit")].find((e) => e.offsetParent); if (first) time.scrollLeft = Math.max(0, first.offsetLeft - time.clientWidth / 4); }
  });

  // --- the keyboard: one stop, arrows inside

  function at(e, focus) {
    if (current) current.tabIndex = -1;
    current = e;
    e.tabIndex = 0;
    if (focus) { e.focus({ preventScroll: true }); inView(e); }
  }
  const visible = () => rows.filter((r) => r[0].offsetParent);
  const middle = (e) => Number(e.style.getPropertyValue("--a")) + Number(e.style.getPropertyValue("--d")) / 2;
  time.addEventListener("focusin", (ev) => { if (ev.target.matches(".s")) { at(ev.target); show(ev.target); } });
  time.addEventListener("keydown", (ev) => {
    const e = ev.target.closest(".s");
    if (!e) return;
    const shown = visible(), r = shown.findIndex((row) => row.includes(e)), i = shown[r].indexOf(e);
    const near = (row) => row.reduce((a, b) => (Math.abs(middle(b) - middle(e)) < Math.abs(middle(a) - middle(e)) ? b : a));
    const to = { ArrowLeft: () => shown[r][i - 1], ArrowRight: () => shown[r][i + 1], Home: () => shown[r][0], End: () => shown[r].at(-1),
      ArrowUp: () => shown[r - 1] && near(shown[r - 1]), ArrowDown: () => shown[r + 1] && near(shown[r + 1]) }[ev.key];
    if (to) { ev.preventDefault(); const next = to(); if (next) at(next, true); }
    else if (ev.key === "Enter" || ev.key === " ") { ev.preventDefault(); pin(pinned === e ? null : e); if (pinned && e.dataset.l) intoText(lineOf(e.dataset.l)); }
  });
  document.addEventListener("keydown", (ev) => { if (ev.key === "Escape") pin(null); });
  if (rows.length) at(rows[0][0]);

  // --- width

  document.querySelector(".zoom").hidden = false;
  const unit = () => parseFloat(time.style.getPropertyValue("--u"));
  const end = parseFloat(time.style.getPropertyValue("--end"));
  const step = () => { const u = unit(); time.style.setProperty("--step", [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => s * u >= 48) || 1000); ticks(); };
  function ticks() {
    const s = Number(time.style.getPropertyValue("--step")), box = time.querySelector(".ticks");
    box.replaceChildren(...Array.from({ length: Math.floor(end / s) + 1 }, (_, n) => { const t = document.createElement("span"); t.textContent = n * s; t.style.setProperty("--a", n * s); return t; }));
  }
  function zoom(u) {
    const name = time.querySelector(".label").offsetWidth, center = (time.scrollLeft + (time.clientWidth - name) / 2) / unit();
    time.style.setProperty("--u", Math.min(Math.max(u, 0.5), 120) + "px");
    step();
    time.scrollLeft = center * unit() - (time.clientWidth - name) / 2;
  }
  document.getElementById("in").onclick = () => zoom(unit() * 1.5);
  document.getElementById("out").onclick = () => zoom(unit() / 1.5);
  document.getElementById("fit").onclick = () => zoom((time.clientWidth - time.querySelector(".label").offsetWidth - 28) / end);
})();
