import { memoryInbox } from '../../libs/payments/dist/stores/memory/memory-inbox.js';
import { SeededRandom } from '../../apps/demo/src/chaos/seeded-random.ts';
import { durableMemory } from './durable-memory-store.ts';
import { VIRTUAL_TIMES } from './simulated-application.ts';
import { Simulation } from './simulation.ts';
import type { Scenario } from './scenario.ts';
import { VirtualTimeline } from './virtual-timeline.ts';

const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);

/** Plays a scenario in virtual time, on the memory store. Returns the violations. */
export async function playInMemory(
  scenario: Scenario,
  trace?: (line: string) => void,
): Promise<string[]> {
  const timeline = new VirtualTimeline(new SeededRandom(scenario.seed + 1));
  let wallMs = START;
  const memory = memoryInbox({ retentionMs: 24 * HOUR }).create({
    now: () => wallMs + timeline.now,
    monotonic: () => timeline.now,
    random: () => 0.5,
    schedule: (ms, callback) => timeline.schedule(ms, callback),
  });
  return new Simulation(scenario, {
    timeline,
    database: durableMemory(memory),
    times: VIRTUAL_TIMES,
    exact: true,
    setWallClock: (byMs) => {
      wallMs += byMs;
    },
    settleMs: 4 * HOUR,
    ...(trace && { trace }),
  }).run();
}
