import { busyMorning } from './scenes/busy-morning.scene.js';
import { crash } from './scenes/crash.scene.js';
import { expiredToken } from './scenes/expired-token.scene.js';
import { rotation } from './scenes/rotation.scene.js';
import type { Scene } from './scenes/scene.js';
import { stranger } from './scenes/stranger.scene.js';
import { tampered } from './scenes/tampered.scene.js';
import { testWebhook } from './scenes/test-webhook.scene.js';
import { toldAgain } from './scenes/told-again.scene.js';
import { twoParts } from './scenes/two-parts.scene.js';

/** A day of business, in its order. */
export const DAY: readonly Scene[] = [
  testWebhook,
  busyMorning,
  toldAgain,
  twoParts,
  tampered,
  rotation,
  expiredToken,
  stranger,
  crash,
];
