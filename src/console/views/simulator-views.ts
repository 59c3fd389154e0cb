import { PolicyRecommend } from "./policy-recommend.jsx";
import { Simulate } from "./simulate.jsx";

/** The views that ask the simulator: in one file, so that what they share splits no other. */
export const simulatorViews = { PolicyRecommend, Simulate } as const;
