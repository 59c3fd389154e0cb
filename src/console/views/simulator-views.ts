import { PolicyRecommend } from "./policy-recommend.jsx";
import { Simulate } from "./simulate.jsx";

/** The views that use the simulator. In one file, so that their shared code splits no other. */
export const simulatorViews = { PolicyRecommend, Simulate } as const;
