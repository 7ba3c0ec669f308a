import type { Stage } from '../stage.js';

/** A part of the day. */
export interface Scene {
  readonly title: string;
  /** Plays it and checks what comes of it. Leaves no fault switched on. */
  play(stage: Stage): Promise<void>;
}
