/** English texts of the widget: there is no translation outside JupyterLab. */
import type { Trans } from '../trans';

type Value = string | number;

function fill(sentence: string, values: readonly Value[]): string {
  return sentence.replace(/%(\d)/g, (sign, place: string) =>
    String(values[Number(place) - 1] ?? sign)
  );
}

export const trans: Trans = {
  __: (sentence: string, ...values: Value[]) => fill(sentence, values),
  _n: (one: string, many: string, count: number, ...values: Value[]) =>
    fill(count === 1 ? one : many, [count, ...values])
};
