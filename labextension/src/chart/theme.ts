/** Reads the colors of the page for a chart, and reports theme changes. */

/** Colors of a chart in a form that a canvas accepts. */
export interface IPalette {
  readonly line: string;
  readonly fill: string;
  readonly limit: string;
  readonly forecast: string;
  readonly grid: string;
  readonly text: string;
  readonly mark: string;
  readonly background: string;
  readonly font: string;
}

/** Media query for a dark system theme. */
export const SYSTEM_IS_DARK = '(prefers-color-scheme: dark)';

/** Media query for forced colors (high contrast). */
const SYSTEM_FORCES = '(forced-colors: active)';

const COLOURS = {
  line: 'var(--jp-brand-color1)',
  fill: 'color-mix(in srgb, var(--jp-brand-color1) 12%, transparent)',
  limit: 'var(--jp-error-color1)',
  forecast: 'var(--jp-warn-color1)',
  grid: 'var(--jp-border-color2)',
  text: 'var(--jp-ui-font-color2)',
  mark: 'var(--jp-ui-font-color3)',
  background: 'var(--jp-layout-color1)'
} as const;

/**
 * System colors: the browser does not force the colors of a canvas. Dashes and labels distinguish the lines. The grid
 * does not use `GrayText`, which may be as strong as text.
 */
const FORCED: Record<keyof typeof COLOURS, string> = {
  line: 'Highlight',
  fill: 'transparent',
  limit: 'CanvasText',
  forecast: 'LinkText',
  grid: 'color-mix(in srgb, CanvasText 25%, Canvas)',
  text: 'CanvasText',
  mark: 'CanvasText',
  background: 'Canvas'
};

/**
 * Read the current colors at this place of the page.
 *
 * The host must be attached: a detached element has no computed style, so all colors would be black.
 */
export function readPalette(host: HTMLElement): IPalette {
  const font = getComputedStyle(host).fontFamily;
  if (matchMedia(SYSTEM_FORCES).matches) {
    return { ...FORCED, font };
  }
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
    font
  };
}

/**
 * Call back when the page's theme may have changed: a change of class, style or data attributes on
 * `html` or `body`, a style sheet that finished loading, or the system theme. Returns a function that stops it.
 */
export function onThemeChange(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, { attributes: true });
  }
  document.head.addEventListener('load', changed, true);
  const systems = [SYSTEM_IS_DARK, SYSTEM_FORCES].map(query => matchMedia(query));
  systems.forEach(system => system.addEventListener('change', changed));
  return () => {
    systems.forEach(system => system.removeEventListener('change', changed));
    observer.disconnect();
    document.head.removeEventListener('load', changed, true);
  };
}
