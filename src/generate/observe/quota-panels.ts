import type { Panel } from "./dashboard.js";
import { lines, numberPanel, own, stacked, sumRate } from "./panels.js";

/** What Envoys let pass by themselves: what they want of each quota, and what they have. */
export const quotaPanels: readonly Panel[] = [
  numberPanel(
    {
      title: "Without a lease",
      about: "Limits of which replicas hand out by on_store_failure, as no lease holds any more.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    `sum(${own("headgate_quota_leases", { state: "lost" })})`,
  ),
  lines(
    {
      title: "Wanted",
      about: "What callers ask of Envoys, admitted or not, by quota. Hits a second.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_demand_rate")})` },
  ),
  lines(
    {
      title: "Assigned",
      about: "The most that Envoys may let pass, by quota. What nobody wants is lent.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_assigned_rate")})` },
  ),
  lines(
    { title: "Used", about: "What Envoys said that they let pass.", unit: "reqps" },
    { "{{outcome}}": sumRate(own("headgate_quota_hits_total"), ["outcome"]) },
  ),
  stacked(
    { title: "Leases", about: "Limits of replicas, by what they may hand out.", unit: "short" },
    { "{{state}}": `sum by (state) (${own("headgate_quota_leases")})` },
  ),
  lines(
    { title: "Streams", about: "Envoys that report usage, by replica.", unit: "short" },
    { "{{instance}}": `max by (instance) (${own("headgate_quota_streams")})` },
  ),
  stacked(
    { title: "Told", about: "Buckets, by what they were told.", unit: "reqps" },
    { "{{kind}}": sumRate(own("headgate_quota_assignments_total"), ["kind"]) },
  ),
  lines(
    {
      title: "What is wrong with reports",
      about: "Buckets without a share, beyond a bound, or with usage that cannot be.",
      unit: "reqps",
    },
    {
      "ignored: {{cause}}": sumRate(own("headgate_quota_ignored_reports_total"), ["cause"]),
      "beyond the bound of a {{bound}}": sumRate(own("headgate_quota_overflows_total"), ["bound"]),
      "unusual: {{reason}}": sumRate(own("headgate_quota_unusual_reports_total"), ["reason"]),
    },
  ),
];
