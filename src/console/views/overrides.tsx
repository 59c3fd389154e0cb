import { OverrideList } from "../parts/override-table.jsx";

/** All keys that have another limit than the policy's. */
export function Overrides() {
  return (
    <>
      <h1>Overrides</h1>
      <section class="panel">
        <OverrideList />
      </section>
    </>
  );
}
