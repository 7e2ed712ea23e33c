/** What JupyterLab's packages ask of a browser and jsdom has not. Imported before them. */
const page = globalThis as unknown as Record<string, unknown>;

page.DragEvent ??= class extends MouseEvent {};
page.requestIdleCallback ??= (callback: () => void) => setTimeout(callback, 0);
page.matchMedia ??= () => ({ matches: false, addEventListener: () => undefined });
