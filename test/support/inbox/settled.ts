import type { INestApplicationContext } from '@nestjs/common';
import { settled as settledWithin } from 'nestjs-payments/testing';

/** Waits as `settled()` of the package does, but so long that it fails only if a delivery hangs, also on a busy machine. */
export function settled(app: INestApplicationContext): Promise<void> {
  return settledWithin(app, { timeoutMs: 60_000 });
}
