import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

/** How much of the machine's processors is taken, from 0 to 1, while this process waits for so long. */
export async function busyShare(ms: number): Promise<number> {
  const before = spent();
  await wait(ms);
  const after = spent();
  return 1 - (after.idle - before.idle) / (after.all - before.all);
}

function spent(): { idle: number; all: number } {
  const times = cpus().map((one) => one.times);
  const idle = times.reduce((sum, one) => sum + one.idle, 0);
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0);
  return { idle, all: idle + busy };
}
