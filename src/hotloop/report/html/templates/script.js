"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.querySelector(".tip");

  // Light, dark, or as the system prefers.
  const theme = document.querySelector(".theme");
  const prefersDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark());
  const label = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  label();

  // What is pointed at, or reached with the arrow keys, says what it is.
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(x - box.width / 2, 8), innerWidth - box.width - 8);
    const above = y - box.height - 12;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : y + 18}px`;
  };
  const hide = () => { tip.hidden = true; };

  const marksOf = (drawing) => {
    const marks = [...drawing.querySelectorAll(".mark")];
    let at = -1;
    const leave = () => { marks.forEach((mark) => mark.classList.remove("here")); };
    const go = (to) => {
      if (!marks.length) return;
      leave();
      at = Math.min(Math.max(to, 0), marks.length - 1);
      const mark = marks[at];
      mark.classList.add("here");
      const box = mark.getBoundingClientRect();
      show(mark.dataset.tip, box.left + box.width / 2, box.top);
    };
    marks.forEach((mark) => {
      mark.addEventListener("pointerenter", (event) => show(mark.dataset.tip, event.clientX, event.clientY));
      mark.addEventListener("pointermove", (event) => show(mark.dataset.tip, event.clientX, event.clientY));
      mark.addEventListener("pointerleave", hide);
    });
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); go(at + step); }
      if (event.key === "Home") { event.preventDefault(); go(0); }
      if (event.key === "End") { event.preventDefault(); go(marks.length - 1); }
      if (event.key === "Escape") { leave(); hide(); }
    });
    drawing.addEventListener("blur", () => { leave(); hide(); at = -1; });
  };

  const linesOf = (drawing) => {
    const svg = drawing.querySelector("svg.lines");
    const [x0, x1, left, right, y0, y1, bottom, top] = svg.dataset.scale.split(" ").map(Number);
    const curves = [...svg.querySelectorAll("polyline")].map((line) => ({
      name: line.dataset.name,
      points: line.getAttribute("points").split(" ").map((pair) => pair.split(",").map(Number)),
    }));
    const places = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point[0])))].sort((a, b) => a - b);
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "boundary");
    let at = -1;
    const tell = (index) => {
      at = Math.min(Math.max(index, 0), places.length - 1);
      const x = places[at];
      const told = curves.map((curve) => {
        const near = curve.points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
        const value = y0 + ((near[1] - bottom) / (top - bottom)) * (y1 - y0);
        return `${curve.name} ${Number(value.toPrecision(4))}`;
      });
      const across = x0 + ((x - left) / (right - left)) * (x1 - x0);
      Object.entries({ x1: x, x2: x, y1: top, y2: bottom }).forEach(([key, value]) => cursor.setAttribute(key, value));
      if (!cursor.parentNode) svg.append(cursor);
      const box = svg.getBoundingClientRect();
      const scale = box.width / svg.viewBox.baseVal.width;
      show(`${svg.dataset.across} ${Number(across.toPrecision(4))}: ${[...new Set(told)].join(" · ")}`, box.left + x * scale, box.top + top * scale);
    };
    const gone = () => { cursor.remove(); hide(); at = -1; };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      tell(places.reduce((best, place, index) => (Math.abs(place - x) < Math.abs(places[best] - x) ? index : best), 0));
    });
    svg.addEventListener("pointerleave", gone);
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) { event.preventDefault(); tell(at + step); }
      if (event.key === "Escape") gone();
    });
    drawing.addEventListener("blur", gone);
  };

  document.querySelectorAll(".drawing").forEach((drawing) => {
    if (drawing.querySelector("svg.lines")) linesOf(drawing);
    else marksOf(drawing);
  });

  // Tables sort by their heads; what has no value comes last.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if ("value" in cell.dataset) return Number(cell.dataset.value);
    return cell.classList.contains("num") ? null : cell.textContent.trim();
  };
  document.querySelectorAll("table.sortable").forEach((table) => {
    table.querySelectorAll("th button").forEach((button) => {
      button.addEventListener("click", () => {
        const head = button.closest("th");
        const up = head.getAttribute("aria-sort") !== "ascending";
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [valueOf(row, head.cellIndex), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          const order = typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
          return up ? order : -order;
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  });

  // A run's number leads to its receipts and its log.
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target || target.tagName !== "DETAILS") return;
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  document.querySelectorAll("[data-copy]").forEach((button) => {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.closest("li").querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });

  // A figure as a file: its title and legend go with it, and its looks are written into each shape, as
  // the page's style stays behind.
  const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "font-size", "font-weight", "font-family", "text-anchor", "paint-order"];
  const SVG = "http://www.w3.org/2000/svg";
  const EDGE = 24, HEAD = 58, LINE = 24;
  const made = (name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    element.textContent = text;
    return element;
  };
  const copied = (svg) => {
    const copy = svg.cloneNode(true);
    const shapes = [...svg.querySelectorAll("*")];
    [...copy.querySelectorAll("*")].forEach((shape, index) => {
      const looks = getComputedStyle(shapes[index]);
      LOOKS.forEach((name) => shape.setAttribute(name, looks.getPropertyValue(name)));
      ["class", "data-tip"].forEach((name) => shape.removeAttribute(name));
    });
    Object.entries({ x: EDGE, y: HEAD, overflow: "visible" }).forEach(([key, value]) => copy.setAttribute(key, value));
    return copy;
  };
  const picture = (figure, svg) => {
    const page = getComputedStyle(document.body);
    const { width, height } = svg.viewBox.baseVal;
    const written = { "font-family": page.fontFamily, fill: page.color };
    const legend = [];
    let x = EDGE, line = 0;
    figure.querySelectorAll(".legend li").forEach((entry) => {
      const takes = entry.getBoundingClientRect().width + 19;
      if (!line || x + takes > EDGE + width) { x = EDGE; line += 1; }
      const y = HEAD + height + line * LINE;
      const colour = getComputedStyle(entry.querySelector(".swatch")).backgroundColor;
      legend.push(made("rect", { x, y: y - 10, width: 11, height: 11, fill: colour }));
      legend.push(made("text", { ...written, x: x + 17, y, "font-size": "12px" }, entry.textContent.trim()));
      x += takes;
    });
    const size = { width: width + 2 * EDGE, height: HEAD + height + line * LINE + EDGE };
    const whole = made("svg", { xmlns: SVG, viewBox: `0 0 ${size.width} ${size.height}`, ...size });
    const title = made("text", { ...written, x: EDGE, y: 34, "font-size": "15px", "font-weight": 600 }, figure.querySelector("h3").textContent);
    whole.append(made("rect", { ...size, fill: page.backgroundColor }), title, copied(svg), ...legend);
    return { blob: new Blob([new XMLSerializer().serializeToString(whole)], { type: "image/svg+xml" }), ...size };
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const painted = ({ blob, width, height }, then) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = width * 2;
      canvas.height = height * 2;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(image.src);
      canvas.toBlob(then, "image/png");
    };
    image.src = URL.createObjectURL(blob);
  };
  document.querySelectorAll("[data-save]").forEach((button) => {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const svg = [...figure.querySelectorAll(".drawing svg")].find((each) => each.getClientRects().length);
      const name = `hotloop-${figure.dataset.name}.${button.dataset.save}`;
      const drawn = picture(figure, svg);
      if (button.dataset.save === "svg") save(drawn.blob, name);
      else painted(drawn, (blob) => save(blob, name));
    });
  });
})();
