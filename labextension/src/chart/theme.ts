/** The colours of the page around a chart, and word when they change. */

/** What a chart paints with, as colours that a canvas takes. */
export interface IPalette {
  readonly line: string;
  readonly fill: string;
  readonly limit: string;
  readonly grid: string;
  readonly text: string;
  readonly mark: string;
  readonly background: string;
  readonly font: string;
}

const COLOURS = {
  line: 'var(--jp-brand-color1)',
  fill: 'color-mix(in srgb, var(--jp-brand-color1) 12%, transparent)',
  limit: 'var(--jp-error-color1)',
  grid: 'var(--jp-border-color2)',
  text: 'var(--jp-ui-font-color2)',
  mark: 'var(--jp-ui-font-color3)',
  background: 'var(--jp-layout-color1)'
} as const;

/**
 * Read the colours as they are at this place of the page.
 *
 * The host must be attached: a detached element has no computed style, and all would come out black.
 */
export function readPalette(host: HTMLElement): IPalette {
  const probe = document.createElement('span');
  probe.hidden = true;
  host.appendChild(probe);
  const colours: Record<string, string> = {};
  for (const [name, colour] of Object.entries(COLOURS)) {
    probe.style.color = colour;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return {
    ...(colours as Record<keyof typeof COLOURS, string>),
    font: getComputedStyle(host).fontFamily
  };
}

/**
 * Call back when the page's theme may have changed: a change of class, style or data attributes on
 * `html` or `body`, or a style sheet that finished loading. Returns what ends it.
 */
export function onThemeChange(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, { attributes: true });
  }
  document.head.addEventListener('load', changed, true);
  return () => {
    observer.disconnect();
    document.head.removeEventListener('load', changed, true);
  };
}
