/** The colours of the page around a chart, and word when they change. */

/** What a chart paints with, as colours that a canvas takes. */
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

/** The media query for a system that is set to dark colours. */
export const SYSTEM_IS_DARK = '(prefers-color-scheme: dark)';

/** The media query for a system that allows a few colours of its user's choice alone. */
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
 * The system's own, for a canvas is not forced: dashes and words tell the lines apart. Its `GrayText` may be as strong as
 * text, a dark red on Windows, where the grid is to stay behind the lines.
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
 * Read the colours as they are at this place of the page.
 *
 * The host must be attached: a detached element has no computed style, and all would come out black.
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
 * `html` or `body`, a style sheet that finished loading, or the system's own theme. Returns what ends it.
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
