import { formatCount, formatPercent, formatRate } from "../data/format.js";
import { type FleetRoom, formatRange, judgeRoom } from "../data/rooms.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { Badge, Meter, PolledAnswer, SilentNotice } from "../parts/status.jsx";
import { useRooms } from "../state/rooms-poll.js";

/** All waiting rooms: how many wait before each, and for how long. */
export function Rooms() {
  const polled = useRooms();
  return (
    <>
      <h1>Rooms</h1>
      <PolledAnswer polled={polled.value}>
        {({ rooms, silentReplicas }) => (
          <>
            <SilentNotice count={silentReplicas} />
            {rooms.length === 0 ? (
              <p class="empty">
                The active policy has no waiting rooms. The field spec.waitingRooms of{" "}
                <a href="#/policy">the policy</a> adds one.
              </p>
            ) : (
              <div class="cards">
                {rooms.map((room) => (
                  <RoomCard key={room.room.name} fleetRoom={room} />
                ))}
              </div>
            )}
          </>
        )}
      </PolledAnswer>
    </>
  );
}

function RoomCard({ fleetRoom }: { readonly fleetRoom: FleetRoom }) {
  const { room, heldRatio } = fleetRoom;
  const { tone, word } = judgeRoom(fleetRoom);
  const { waiting = 0n, active = 0n, activeMax = 0n, entriesPerSecond } = room.line ?? {};
  return (
    <a class={`card ${tone}`} href={formatRoute(["room", room.name])}>
      <span class="card-head">
        <b>{showText(room.name)}</b>
        <Badge tone={tone}>{word}</Badge>
      </span>
      <span class="card-value">
        {formatCount(waiting)}
        <small>
          {" "}
          waiting, {formatCount(active)} of {formatCount(activeMax)} active
        </small>
      </span>
      <Meter ratio={activeMax === 0n ? 0 : Number(active) / Number(activeMax)} tone={tone} />
      <span class="card-facts">
        <span>
          wait <b>{formatRange(room.estimate)}</b>
        </span>
        <span>
          entering <b>{entriesPerSecond === undefined ? "-" : formatRate(entriesPerSecond)}</b>
        </span>
        <span>
          ranges held <b>{heldRatio === undefined ? "-" : formatPercent(heldRatio)}</b>
        </span>
        <span>
          service <b>{showText(room.service)}</b>
        </span>
      </span>
    </a>
  );
}
