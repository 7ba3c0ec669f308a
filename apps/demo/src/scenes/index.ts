import type { Scene } from '../demo-environment.js';
import { busyMorning } from './busy-morning.js';
import { expiredToken } from './expired-token.js';
import { killedShop } from './killed-shop.js';
import { declinedPayment, missingWebhooks } from './missing-webhooks.js';
import { partialPayments, unmatchedPayment } from './unusual-payments.js';
import { secretRotation } from './secret-rotation.js';
import { duplicateEvent, tamperedDelivery, testWebhook } from './unusual-webhooks.js';

/** All scenes, in order. */
export const SCENES: readonly Scene[] = [
  testWebhook,
  busyMorning,
  duplicateEvent,
  partialPayments,
  tamperedDelivery,
  secretRotation,
  expiredToken,
  unmatchedPayment,
  killedShop,
  missingWebhooks,
  declinedPayment,
];
