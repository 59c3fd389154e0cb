import { formatCount, formatMillis, formatNumber, formatPercent } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { type FleetService, judgeService, shedRatioNoticed } from "../data/services.js";
import { showText } from "../data/shown-text.js";
import { Badge, Meter, PolledAnswer, SilentNotice } from "../parts/status.jsx";
import { useServices } from "../state/services-poll.js";

/** All services with admission; which of them are overloaded can be seen from afar. */
export function Services() {
  const polled = useServices();
  return (
    <>
      <h1>Services</h1>
      <PolledAnswer polled={polled.value}>
        {({ services, silentReplicas }) => {
          const sorted = [...services].sort((a, b) => severity(b) - severity(a));
          return (
            <>
              <SilentNotice count={silentReplicas} />
              {sorted.length === 0 ? (
                <p class="empty">
                  The active policy has no services with admission. Add one to{" "}
                  <a href="#/policy">the policy</a> under spec.services.
                </p>
              ) : (
                <div class="cards">
                  {sorted.map((service) => (
                    <ServiceCard key={service.name} service={service} />
                  ))}
                </div>
              )}
            </>
          );
        }}
      </PolledAnswer>
    </>
  );
}

function severity(service: FleetService): number {
  return { good: 0, warn: 1, bad: 2 }[judgeService(service).tone];
}

function ServiceCard({ service }: { readonly service: FleetService }) {
  const { name, limit, inFlight, waiting, rttMs, shedRatio, gate, refused } = service;
  const { tone, word } = judgeService(service);
  const ratio = limit === 0 ? 0 : inFlight / limit;
  const bound = limit === 0 ? "in flight, no limit" : `of ${formatCount(limit)} in flight`;
  const isShedding = shedRatio >= shedRatioNoticed;
  return (
    <a class={`card ${tone}`} href={formatRoute(["service", name])}>
      <span class="card-head">
        <b>{showText(name)}</b>
        <Badge tone={tone}>{word}</Badge>
      </span>
      <span class="card-value">
        {isShedding ? formatPercent(shedRatio) : formatCount(inFlight)}
        <small>{isShedding ? ` shed, ${formatCount(inFlight)} ${bound}` : ` ${bound}`}</small>
      </span>
      <Meter ratio={ratio} tone={tone} />
      <span class="card-facts">
        {isShedding ? undefined : (
          <span>
            shed <b>{formatPercent(shedRatio)}</b>
          </span>
        )}
        <span>
          waiting <b>{formatCount(waiting)}</b>
        </span>
        <span>
          rtt <b>{rttMs === 0 ? "-" : formatMillis(rttMs)}</b>
        </span>
        <span>
          gate <b>{gate === "" ? "none" : gate}</b>
        </span>
        <span>
          refused <b>{formatNumber(refused)}</b>
        </span>
      </span>
    </a>
  );
}
