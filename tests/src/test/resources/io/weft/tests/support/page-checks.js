// Checks of a page that only a browser can make: what is where, and in which colours.
var weft = (() => {
  const content = () => document.getElementById("weft");
  const visible = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const name = (element) => `${element.tagName} "${element.textContent.trim().slice(0, 40)}"`;

  // Of its first line, because the middle of several lines may be beside the text.
  const middle = (element) => {
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const [box] = element.getClientRects();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  };

  const withText = (selector, text) =>
    [...document.querySelectorAll(selector)].find((e) => e.textContent.trim() === text);

  // The tooltip of the innermost element with one that the mouse is over.
  const tooltip = () =>
    [...document.querySelectorAll(":hover")]
      .map((e) => e.querySelector(":scope > title")?.textContent ?? e.title)
      .filter((text) => text)
      .pop() ?? "";

  const top = (selector) =>
    document.querySelector(selector).getBoundingClientRect().y + scrollY;

  // Rows of the first table after a heading: texts of cells by column.
  const table = (heading) => {
    let next = document.getElementById(heading).nextElementSibling;
    while (!next.querySelector("table")) next = next.nextElementSibling;
    const texts = (row) => [...row.children].map((cell) => cell.textContent.trim());
    const [head, ...rows] = [...next.querySelectorAll("tr")].map(texts);
    const titles = head.map((title) => title.replace(/ [▾▴]$/, ""));
    return rows.map((row) => Object.fromEntries(row.map((cell, i) => [titles[i], cell])));
  };

  const column = (heading, title) => table(heading).map((row) => row[title]);

  const leaves = () =>
    [...content().querySelectorAll("*")].filter(
      (e) => visible(e) && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));

  const clips = (style) => !["visible", "auto", "scroll"].includes(style);

  // Texts and pictures that no scrolling brings into view.
  const hidden = () => {
    const all = [...leaves(), ...content().querySelectorAll("svg *")];
    return all.filter((e) => visible(e) && e.tagName !== "title" && !reachable(e)).map(name);
  };

  const reachable = (element) => {
    let { left, right } = element.getBoundingClientRect();
    for (let outer = element.parentElement; outer; outer = outer.parentElement) {
      const style = getComputedStyle(outer);
      const bounds = outer.getBoundingClientRect();
      if (["auto", "scroll"].includes(style.overflowX)) {
        const start = bounds.left - outer.scrollLeft;
        if (left < start - 1 || right > start + outer.scrollWidth + 1) return false;
        ({ left, right } = bounds);
      } else if (clips(style.overflowX) && (left < bounds.left - 1 || right > bounds.right + 1)) {
        return false;
      }
    }
    return left >= -1 && right <= document.documentElement.clientWidth + 1;
  };

  // Elements of the content that make the page wider than the window.
  const overflowing = () => {
    const wide = (e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
    const scrolls = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
    return [...content().querySelectorAll("*")]
      .filter((e) => visible(e) && wide(e))
      .filter((e) => {
        for (let o = e.parentElement; o !== content().parentElement; o = o.parentElement) {
          if (scrolls(o)) return false;
        }
        return true;
      })
      .map(name);
  };

  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const paint = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) {
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data];
  };

  // All backgrounds below an element, the lowest first. Bootstrap stripes cells by inner shadows.
  const backgrounds = (element) => {
    const colours = [];
    for (let e = element; e; e = e.parentElement) {
      const { backgroundColor, boxShadow } = getComputedStyle(e);
      const stripe = /^(.*\)) 0px 0px 0px 9999px inset$/.exec(boxShadow);
      colours.unshift(backgroundColor, ...(stripe ? [stripe[1]] : []));
    }
    return [getComputedStyle(document.documentElement).colorScheme === "dark" ? "#121212" : "#fff",
      ...colours];
  };

  const luminance = ([r, g, b]) => {
    const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };

  // The contrast of a colour with what is below an element, from 1 to 21, as WCAG 2 defines it.
  const contrast = (colour, element) => {
    if (colour === "none") return 1;
    const below = backgrounds(element);
    const [x, y] = [paint([...below, colour]), paint(below)].map(luminance).sort((a, b) => b - a);
    return (x + 0.05) / (y + 0.05);
  };

  const isDark = () => luminance(paint(backgrounds(content()))) < 0.2;

  const colourOf = (e) =>
    e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color;

  // Texts with less contrast than wanted.
  const faintTexts = (least) =>
    leaves()
      .filter((e) => e.tagName !== "title")
      .map((e) => [e, contrast(colourOf(e), e)])
      .filter(([, value]) => value < least)
      .map(([e, value]) => `${name(e)} ${colourOf(e)} ${value.toFixed(2)}`);

  // Shapes of pictures whose area and outline have less contrast than wanted.
  const faintShapes = (least) =>
    [...content().querySelectorAll("svg rect, svg path")]
      .map((e) => [e, getComputedStyle(e)])
      .filter(([, style]) => style.fill !== "rgba(0, 0, 0, 0)")
      .map(([e, style]) => [e, Math.max(contrast(style.fill, e), contrast(style.stroke, e))])
      .filter(([, value]) => value < least)
      .map(([e, value]) => `${e.outerHTML.slice(0, 120)} ${value.toFixed(2)}`);

  return {
    middle, withText, tooltip, top, table, column, hidden, overflowing, isDark, faintTexts,
    faintShapes,
  };
})();
