import type { Panel } from "./dashboard.js";
import { lines, numberPanel, own, stacked, sumRate } from "./panels.js";

/** What Envoys let pass by themselves: what they want of each quota, and what they have. */
export const quotaPanels: readonly Panel[] = [
  numberPanel(
    {
      title: "Without a lease",
      about:
        "Limits that replicas hand out with on_store_failure, because their lease has expired.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    `sum(${own("headgate_quota_leases", { state: "lost" })})`,
  ),
  lines(
    {
      title: "Wanted",
      about: "Requests of callers at Envoys, admitted or not, by quota, in hits per second.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_demand_rate")})` },
  ),
  lines(
    {
      title: "Assigned",
      about: "Maximum that Envoys may admit, by quota. Unused capacity is lent.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_assigned_rate")})` },
  ),
  lines(
    { title: "Used", about: "Reported admitted requests.", unit: "reqps" },
    { "{{outcome}}": sumRate(own("headgate_quota_hits_total"), ["outcome"]) },
  ),
  stacked(
    { title: "Leases", about: "Limits of replicas, by lease state.", unit: "short" },
    { "{{state}}": `sum by (state) (${own("headgate_quota_leases")})` },
  ),
  lines(
    { title: "Streams", about: "Envoys that report usage, by replica.", unit: "short" },
    { "{{instance}}": `max by (instance) (${own("headgate_quota_streams")})` },
  ),
  stacked(
    { title: "Told", about: "Buckets, by assignment.", unit: "reqps" },
    { "{{kind}}": sumRate(own("headgate_quota_assignments_total"), ["kind"]) },
  ),
  lines(
    {
      title: "Problems of reports",
      about: "Buckets without a share or beyond a bound, and impossible usage.",
      unit: "reqps",
    },
    {
      "ignored: {{cause}}": sumRate(own("headgate_quota_ignored_reports_total"), ["cause"]),
      "beyond the bound of a {{bound}}": sumRate(own("headgate_quota_overflows_total"), ["bound"]),
      "unusual: {{reason}}": sumRate(own("headgate_quota_unusual_reports_total"), ["reason"]),
    },
  ),
];
