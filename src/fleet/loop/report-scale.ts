/** Steps in each doubling of a value. */
const stepsPerDoubling = 16;
const stepBits = 4;

/** Values are counted in units of 1/1,024. */
const partsPerUnit = 1_024;
const partBits = 10;

/** Larger values are reported as this one. */
const valueMax = 2 ** 32;

/** The largest code. */
export const scaleCodeMax = 1 + stepsPerDoubling * (partBits + 32);

/** A value is reported again if its last reported value differs by more than this ratio of it. */
export const deadbandRatio = 0.05;

/**
 * Encodes values from 0 as small whole numbers: 16 steps for each doubling, as in a float with four
 * bits. A decoded value is within 3.1 % of the original, and a whole number up to 32 is exact. Only
 * 0 has code 0.
 *
 * Example: 1 is code 161 and 2 is code 177; 100 is decoded as 100, 101 as 100, and 103 as 104.
 */
export class ReportScale {
  readonly #values = new Float64Array(scaleCodeMax + 1);
  readonly #units = new Float64Array(partBits + 33);

  constructor() {
    for (let power = 0; power < this.#units.length; power += 1) {
      this.#units[power] = 2 ** (power - stepBits);
    }
    for (let code = 1; code <= scaleCodeMax; code += 1) {
      const power = (code - 1) >> stepBits;
      const step = stepsPerDoubling + ((code - 1) & (stepsPerDoubling - 1));
      this.#values[code] = (step * 2 ** (power - stepBits)) / partsPerUnit;
    }
  }

  /** Returns the code of the nearest value. 0 if the value is not a number. */
  codeOf(value: number): number {
    if (!(value > 0)) return 0;
    const parts = Math.min(value, valueMax) * partsPerUnit;
    if (parts < 1) return 1;
    const power = parts < 2 ** 31 ? 31 - Math.clz32(parts) : 52 - Math.clz32(parts / 2 ** 21);
    const step = Math.round(parts / (this.#units[power] ?? 1));
    return 1 + stepsPerDoubling * power + step - stepsPerDoubling;
  }

  /** @param code from 0 to `scaleCodeMax` */
  valueOf(code: number): number {
    return this.#values[code] ?? 0;
  }

  /** Returns the last code as long as it is within `deadbandRatio`, otherwise the nearest one. */
  next(told: number, value: number): number {
    const isNear = Math.abs(value - this.valueOf(told)) <= deadbandRatio * value;
    return isNear && told > 0 ? told : this.codeOf(value);
  }
}
