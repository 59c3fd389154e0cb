const P = (globalThis as any).process?.env ?? {};
const num = (name: string, usual: number): number => Number(P[name] ?? usual);
const exactMax = 16;
const stepRatio = 1.08;
const weightMax = num("K_W", 100);
const memoryMs = num("K_MEM", 30_000);
const memoryCount = num("K_MEMN", 400);
const usualDelta = num("K_DELTA", 2);

export interface KneeFit {
  readonly knee: number;
  readonly lowest: number;
  readonly highest: number;
  readonly serviceMs: number | undefined;
  readonly isFlat: boolean;
  readonly dispersion: number;
}

/** Round trips by how many were in flight. */
export class LatencyByLevel {
  readonly #weights: number[] = [];
  readonly #sumsMs: number[] = [];
  readonly #levelSums: number[] = [];
  readonly #squares: number[] = [];

  add(level: number, rttMs: number): void {
    const i = placeOf(level);
    const weight = this.#weights[i] ?? 0;
    const kept = weight >= weightMax ? 1 - 1 / weightMax : 1;
    this.#weights[i] = weight * kept + 1;
    this.#sumsMs[i] = (this.#sumsMs[i] ?? 0) * kept + rttMs;
    this.#levelSums[i] = (this.#levelSums[i] ?? 0) * kept + level;
    this.#squares[i] = (this.#squares[i] ?? 0) * kept + rttMs * rttMs;
  }

  forget(elapsedMs: number, count: number, knee: number): void {
    const rate = Math.min(elapsedMs / memoryMs, count / memoryCount);
    for (let i = 0; i < this.#weights.length; i += 1) {
      const level = (this.#levelSums[i] ?? 0) / (this.#weights[i] || 1);
      const kept = Math.exp(-rate * (level > 1.2 * knee ? num("K_FAST", 4) : 1));
      this.#weights[i] = (this.#weights[i] ?? 0) * kept;
      this.#sumsMs[i] = (this.#sumsMs[i] ?? 0) * kept;
      this.#levelSums[i] = (this.#levelSums[i] ?? 0) * kept;
      this.#squares[i] = (this.#squares[i] ?? 0) * kept;
    }
  }

  /** Forgets most of what is above a level. */
  forgetAbove(least: number): void {
    for (let i = 0; i < this.#weights.length; i += 1) {
      const level = (this.#levelSums[i] ?? 0) / (this.#weights[i] || 1);
      if (level <= least) continue;
      const kept = num("K_CHANGED", 0.1);
      this.#weights[i] = (this.#weights[i] ?? 0) * kept;
      this.#sumsMs[i] = (this.#sumsMs[i] ?? 0) * kept;
      this.#levelSums[i] = (this.#levelSums[i] ?? 0) * kept;
      this.#squares[i] = (this.#squares[i] ?? 0) * kept;
    }
  }

  fit(): KneeFit {
    const n: number[] = [], k: number[] = [], r: number[] = [], q: number[] = [];
    for (let i = 0; i < this.#weights.length; i += 1) {
      const weight = this.#weights[i] ?? 0;
      if (weight < 0.01) continue;
      n.push((this.#levelSums[i] ?? 0) / weight);
      k.push(weight);
      r.push(this.#sumsMs[i] ?? 0);
      q.push(this.#squares[i] ?? 0);
    }
    const total = k.reduce((a, b) => a + b, 0);
    let aboveR = 0, aboveK = 0, aboveKLog = 0;
    let belowR = r.reduce((a, b) => a + b, 0);
    // Candidates: knee at each level seen; the highest is "none".
    const ll: number[] = [];
    const s: number[] = [];
    for (let j = n.length - 1; j >= 0; j -= 1) {
      const c = n[j] ?? 1;
      const a = belowR + c * aboveR;
      const b = aboveKLog - aboveK * Math.log(c);
      s[j] = a / total;
      ll[j] = -b - total * Math.log(a / total);
      belowR -= r[j] ?? 0;
      aboveR += (r[j] ?? 0) / c;
      aboveK += k[j] ?? 0;
      aboveKLog += (k[j] ?? 0) * Math.log(c);
    }
    let best = n.length - 1;
    for (let j = n.length - 1; j >= 0; j -= 1) if ((ll[j] ?? 0) > (ll[best] ?? 0)) best = j;
    let sum = 0;
    for (let j = 0; j < n.length; j += 1) {
      const m = (s[best] ?? 1) * Math.max(1, (n[j] ?? 1) / (n[best] ?? 1));
      sum += (q[j] ?? 0) / (m * m) - (2 * (r[j] ?? 0)) / m + (k[j] ?? 0);
    }
    const phi = num("K_PHI", 1) * Math.min(20, Math.max(num("K_PHIMIN", 0.3), sum / total));
    const delta = usualDelta * phi;
    let lo = best, hi = best;
    while (lo > 0 && (ll[lo - 1] ?? 0) >= (ll[best] ?? 0) - delta) lo -= 1;
    while (hi < n.length - 1 && (ll[hi + 1] ?? 0) >= (ll[best] ?? 0) - delta) hi += 1;
    const isOpen = hi === n.length - 1;
    // Below the lowest level that was seen nothing is known.
    const lowest = lo === 0 ? Math.min(1, n[0] ?? 1) === (n[0] ?? 1) ? 1 : 0 : (n[lo] ?? 0);
    return { knee: n[best] ?? 1, lowest, highest: isOpen ? Number.POSITIVE_INFINITY : (n[hi] ?? 1), serviceMs: s[best], dispersion: Math.max(1, sum / total), isFlat: isOpen && ((n[n.length - 1] ?? 1) < 1.5 || (ll[n.length - 1] ?? 0) - (ll[0] ?? 0) >= num("K_FLAT", 1) * phi) };
  }
}

function placeOf(level: number): number {
  if (level <= exactMax) return level;
  return exactMax + Math.floor(Math.log(level / exactMax) / Math.log(stepRatio));
}
