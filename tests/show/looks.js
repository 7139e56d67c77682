// Runs in the page behind its own script: does what a person does, and leaves what it saw as JSON in the document.
"use strict";
(() => {
  const seen = { errors: window.seenErrors };
  const all = (q, at = document) => [...at.querySelectorAll(q)];
  const box = (e) => e.getBoundingClientRect();
  const time = document.getElementById("time"), panel = document.getElementById("panel");
  const key = (e, name) => e.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const style = (e, name) => getComputedStyle(e).getPropertyValue(name);
  try {
    seen.wide = [document.documentElement.scrollWidth, innerWidth];
    seen.back = style(document.body, "background-color");
    seen.columns = style(document.querySelector("main"), "grid-template-columns").split(" ").length;

    if (time) {
      all("#time details").forEach((d) => (d.open = true));
      const u = parseFloat(time.style.getPropertyValue("--u"));
      const origin = box(document.querySelector("#time .track")).left;
      const off = [], over = [];
      for (const lane of all("#time .lane:not(.axis)")) {
        const outer = box(lane);
        let last = -Infinity;
        for (const e of all(".s", lane)) {
          const b = box(e), start = parseFloat(e.style.getPropertyValue("--a"));
          if (Math.abs(b.left - origin - start * u) > 1 || b.top < outer.top || b.bottom > outer.bottom) off.push(e.id);
          if (b.left < last - 1) over.push(e.id);
          last = b.right;
        }
      }
      seen.slices = all("#time .s").length;
      seen.off = off; // not where their time is, or outside of their lane
      seen.over = over; // over the one before

      seen.curves = all("#time path[data-a]").length;
      seen.loose = all("#time path[data-a]").filter((p) => {
        const [a, b] = p.dataset.a.split(" ").map((n) => box(document.getElementById("e" + n)));
        const m = p.getScreenCTM(), from = p.getPointAtLength(0), to = p.getPointAtLength(p.getTotalLength());
        const y = (q) => q.x * m.b + q.y * m.d + m.f, x = (q) => q.x * m.a + q.y * m.c + m.e;
        return y(from) < a.top || y(from) > a.bottom || y(to) < b.top || y(to) > b.bottom || Math.abs(x(from) - a.right) > 2 || x(to) < b.left - 2 || x(to) > b.right + 2;
      }).length; // that do not go from the end of one slice to the other

      // a line of the text
      const link = document.querySelector(".text a.no.on[data-l]");
      const lines = all(".text a.no.on").map((a) => a.dataset.l);
      const l = (lines.length && lines.reduce((x, y) => (all(`.s[data-l="${y}"]`).length > all(`.s[data-l="${x}"]`).length ? y : x))) || null;
      document.querySelector(`.text a.no[data-l="${l}"]`).click();
      seen.line = [all(".s.lit").length, all(`.s[data-l="${l}"]`).length, all(".s:not(.lit)").every((e) => style(e, "opacity") < 0.5), panel.textContent];
      key(document.body, "Escape");
      seen.cleared = [all(".lit, .hot, .kin").length, panel.textContent];

      // a slice that lets another one go on
      const arrow = JSON.parse(document.getElementById("arrows").textContent).find(([a, b]) => document.querySelector(`path[data-a="${a} ${b}"]`));
      if (arrow) {
        const [a, b] = arrow.map((n) => document.getElementById("e" + n));
        a.click();
        seen.pinned = [panel.textContent, a.title, b.title.split(" · ")[0], b.classList.contains("kin"), all("path.hot").length];
        seen.its = all(".text li.hot").map((li) => li.id);
        key(document.body, "Escape");
      }

      // the keyboard: one stop, arrows inside
      const stops = () => all("#time .s").filter((e) => e.tabIndex === 0);
      seen.stops = stops().length;
      stops()[0].focus();
      const row = all(".s", stops()[0].closest(".lane"));
      key(document.activeElement, "End");
      seen.end = [document.activeElement === row.at(-1), stops().length, panel.textContent === row.at(-1).title || panel.textContent.startsWith(row.at(-1).title)];
      key(document.activeElement, "ArrowDown");
      seen.down = document.activeElement.closest(".lane") !== row[0].closest(".lane") || all("#time .lane .s").length === row.length;
      key(document.activeElement, "Enter");
      seen.chosen = time.classList.contains("chosen");
      key(document.activeElement, "Escape");

      // width
      const wide = () => time.scrollWidth;
      const before = wide();
      document.getElementById("in").click();
      const more = wide();
      document.getElementById("fit").click();
      seen.zoom = [before, more, wide(), time.clientWidth];
      document.getElementById("links").click();
      seen.hidden = all("svg.curves").every((s) => style(s, "display") === "none");
    }
    seen.strips = all(".strip").map((s) => all(".part", s).every((p) => box(p).left >= box(s).left - 1 && box(p).right <= box(s).right + 4));
    seen.clipped = all("h1, h2, h3, .badge, .key li, nav a, .finding").filter((e) => e.offsetParent && (e.scrollWidth > e.clientWidth + 1 && style(e, "display") !== "inline")).map((e) => e.textContent.slice(0, 40));
    scrollTo(0, 0);
  } catch (e) {
    seen.errors.push(String(e.stack || e));
  }
  const out = document.createElement("pre");
  out.id = "seen";
  out.hidden = true;
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
