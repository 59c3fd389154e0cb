/** A station of c servers with Poisson arrivals and exponential service: M/M/c. */
export interface Mmc {
  readonly serverCount: number;
  readonly arrivalsPerSecond: number;
  /** Of one server. */
  readonly servedPerSecond: number;
}

/**
 * The probability that a request has to wait: Erlang's C. With a = lambda / mu it is
 * B / (1 - (a / c) (1 - B)), of the loss probability B of the same station without a queue, which
 * grows server by server: B(n) = a B(n - 1) / (n + a B(n - 1)), B(0) = 1.
 *
 * Example: 10 servers at lambda 8, mu 1: 0.4092.
 */
export function waitProbability(station: Mmc): number {
  const { serverCount, arrivalsPerSecond, servedPerSecond } = station;
  const offered = arrivalsPerSecond / servedPerSecond;
  let loss = 1;
  for (let n = 1; n <= serverCount; n += 1) loss = (offered * loss) / (n + offered * loss);
  return loss / (1 - (offered / serverCount) * (1 - loss));
}

/** Mean wait of those who wait, in seconds: 1 / (c mu - lambda). */
export function meanWaitOfWaiting(station: Mmc): number {
  const { serverCount, arrivalsPerSecond, servedPerSecond } = station;
  return 1 / (serverCount * servedPerSecond - arrivalsPerSecond);
}

/** Mean wait of all, in seconds. */
export function meanWait(station: Mmc): number {
  return waitProbability(station) * meanWaitOfWaiting(station);
}

/**
 * The wait that a share of all does not pass, in seconds: of P(W > t) = C exp(-(c mu - lambda) t).
 */
export function waitQuantile(station: Mmc, ratio: number): number {
  const passedRatio = (1 - ratio) / waitProbability(station);
  return passedRatio >= 1 ? 0 : -Math.log(passedRatio) * meanWaitOfWaiting(station);
}
