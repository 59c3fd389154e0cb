/** A view in the navigation. */
export interface NavigationEntry {
  readonly name: string;
  readonly title: string;
  /** Key after `g`. */
  readonly key: string;
  /** Path of its icon, in a box of 24. */
  readonly path: string;
}

/** The views, in the order of the navigation. */
export const navigation: readonly NavigationEntry[] = [
  { name: "overview", title: "Overview", key: "o", path: "M3 13h4l3-8 4 14 3-6h4" },
  { name: "limits", title: "Limits", key: "l", path: "M4 6h16M4 12h10M4 18h6" },
  {
    name: "overrides",
    title: "Overrides",
    key: "v",
    path: "M4 7h10M18 7h2M16 5v4M4 17h2M10 17h10M8 15v4",
  },
  {
    name: "services",
    title: "Services",
    key: "s",
    path: "M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.1M8 16.5h.1",
  },
  {
    name: "rooms",
    title: "Rooms",
    key: "w",
    path: "M5 4h14v17M5 4v17M3 21h18M9 21v-5h6v5M9 8h.1M15 8h.1M9 12h.1M15 12h.1",
  },
  { name: "quotas", title: "Quotas", key: "q", path: "M12 3v9l7 5M12 3a9 9 0 1 0 9 9" },
  {
    name: "budgets",
    title: "Budgets",
    key: "b",
    path: "M12 3a9 9 0 1 0 .1 0M12 7v10M15 9.5c-.8-1.3-6-1.6-6 .8s6 1.4 6 3.6-5.2 2-6 .6",
  },
  { name: "policy", title: "Policy", key: "p", path: "M6 3h9l4 4v14H6zM9 12h7M9 16h7" },
  { name: "simulate", title: "Simulate", key: "m", path: "M7 4v16l13-8zM3 4v16" },
  { name: "tail", title: "Live tail", key: "t", path: "M4 17h7M4 12h12M4 7h9M19 9v9m-3-3 3 3 3-3" },
  {
    name: "fleet",
    title: "Fleet",
    key: "f",
    path: "M12 3l8 4v5c0 5-4 8-8 9-4-1-8-4-8-9V7zM9 12l2 2 4-4",
  },
  { name: "audit", title: "Audit log", key: "a", path: "M5 4h14v16H5zM9 9h6M9 13h6M9 17h3" },
];
