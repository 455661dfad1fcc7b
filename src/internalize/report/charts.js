// Every chart can be pointed at and downloaded; printing opens what is folded. A page is complete without this script.
"use strict";
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the same text is each mark's title
  document.body.append(tip);
  document.addEventListener("pointerover", (event) => {
    const told = event.target.closest?.("circle, .cell")?.querySelector("title");
    tip.hidden = !told;
    if (!told) return;
    tip.textContent = told.textContent;
    tip.style.left = Math.min(event.pageX + 12, scrollX + innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = event.pageY - 34 + "px";
  });

  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // A copy that carries its own colours and background, as the page shows it now.
  const picture = (svg) => {
    const copy = svg.cloneNode(true);
    const paint = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font"];
    const marks = [...copy.querySelectorAll("*")];
    [...svg.querySelectorAll("*")].forEach((mark, at) => {
      const shown = getComputedStyle(mark);
      marks[at].setAttribute("style", paint.map((name) => `${name}:${shown.getPropertyValue(name)}`).join(";"));
    });
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    copy.removeAttribute("data-csv");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.setAttribute("style", `background:${getComputedStyle(document.body).backgroundColor}`);
    return [new XMLSerializer().serializeToString(copy), width, height];
  };

  const kinds = {
    SVG: (svg, name) => save(name + ".svg", new Blob([picture(svg)[0]], { type: "image/svg+xml" })),
    PNG: (svg, name) => {
      const [text, width, height] = picture(svg);
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [2 * width, 2 * height];
        const paper = canvas.getContext("2d");
        paper.fillStyle = getComputedStyle(document.body).backgroundColor;
        paper.fillRect(0, 0, canvas.width, canvas.height);
        paper.drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(name + ".png", blob));
      };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
    },
    CSV: (svg, name) => save(name + ".csv", new Blob([svg.dataset.csv + "\n"], { type: "text/csv" })),
  };

  // A heat map keeps its size; it only shrinks.
  for (const map of document.querySelectorAll("svg.map")) map.style.maxWidth = map.getAttribute("viewBox").split(" ")[2] + "px";

  for (const svg of document.querySelectorAll("svg.chart")) {
    const figure = document.createElement("figure");
    const buttons = document.createElement("figcaption");
    const title = svg.getAttribute("aria-label");
    const name = title.replace(/[^A-Za-z0-9.]+/g, "-").slice(0, 80);
    for (const [kind, download] of Object.entries(kinds)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `Download as ${kind}: ${title}`);
      button.addEventListener("click", () => download(svg, name));
      buttons.append(button);
    }
    svg.replaceWith(figure);
    figure.append(svg, buttons);
  }

  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
})();
