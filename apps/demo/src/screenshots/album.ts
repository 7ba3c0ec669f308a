import type { Page } from 'playwright-core';
import type { Stage } from '../stage.js';
import type { Camera, Look } from './camera.js';

const DESKTOP: Look = { on: 'desktop', scheme: 'light' };
const PHONE: Look = { on: 'phone', scheme: 'light' };
/** The first closed minute is plotted about two minutes after the start. */
const PLOTTED_MS = 150_000;

/** Photographs every page, of a shop that has been open for a while. */
export async function takeAll(camera: Camera, stage: Stage): Promise<void> {
  await takeShop(camera, stage);
  await takeEmulator(camera, stage);
  await takeConsole(camera, stage);
}

async function takeShop(
  camera: Camera,
  { addresses, customer, emulator, pay }: Stage,
): Promise<void> {
  const { shop } = addresses;
  await camera.take('shelf', shop, DESKTOP, (page) => shown(page, 'Bread'));
  await camera.take('shelf-phone', shop, PHONE, (page) => shown(page, 'Kericho tea'));
  const order = await customer.place('tea-7k2m', 350);
  const url = `${shop}o/${order.reference}`;
  await camera.take('order-waiting-phone', url, PHONE, (page) =>
    shown(page, 'Waiting for your payment'),
  );
  await camera.take('order-paid', url, { ...DESKTOP, height: 460 }, async (page) => {
    await shown(page, 'Waiting for your payment');
    await pay(order);
    await shown(page, 'Paid', '.standing');
  });
  const unasked = { amount: 40, externalReference: 'walk-in' };
  emulator.complete(emulator.createStkPush(unasked).transactionId);
  await camera.take('ledger', `${shop}books`, DESKTOP, (page) => shown(page, 'walk-in'));
}

async function takeEmulator(
  camera: Camera,
  { addresses, customer, emulator }: Stage,
): Promise<void> {
  const order = await customer.place('coffee-9w4x', 420.5);
  await camera.take('checkout', order.checkoutUrl!, DESKTOP, async (page) => {
    await page.getByLabel('Phone number').fill('+1 555 010 0123');
    await page.getByRole('button', { name: 'Send the code' }).click();
    await page.getByLabel('One-time code').waitFor();
  });
  const push = { amount: 65.1, externalReference: 'milk-3p8q', phoneNumber: '+15550100123' };
  const { transactionId } = emulator.createStkPush(push);
  const prompt = `${addresses.emulator}stk?transaction=${transactionId}`;
  await camera.take('stk-prompt-phone', prompt, PHONE, async (page) => {
    await shown(page, 'milk-3p8q');
    await page.getByRole('main').scrollIntoViewIfNeeded();
  });
  await camera.take('delivery-log', addresses.emulator, DESKTOP, async (page) => {
    const deliveries = page.locator('#deliveries');
    await deliveries.getByRole('button', { name: 'delivered 200' }).first().click();
    await deliveries.getByText('x-webhook-signature').first().waitFor();
  });
}

async function takeConsole(camera: Camera, stage: Stage): Promise<void> {
  const { addresses, emulator } = stage;
  const { user, password } = addresses;
  const operator = { username: user, password };
  // Told of before it is true: the shop asks the API, books nothing, and tries again.
  const push = emulator.createStkPush({ amount: 180, externalReference: 'sugar-5c6d' });
  const data = { ...emulator.transaction(push.transactionId), status: 'complete' };
  const early = emulator.sendEvent({ eventType: 'transaction.completed', data: { ...data } });
  const event = `${addresses.console}#/events/default/${early.id}`;
  await camera.take('console-event', event, { ...DESKTOP, operator }, async (page) => {
    const attempts = page.getByRole('article', { name: 'bookkeeper' }).locator('tbody tr');
    await attempts.nth(1).waitFor();
  });
  // As long as the traffic was, more or less.
  const overview = `${addresses.console}#/?minutes=15`;
  for (const scheme of ['light', 'dark'] as const) {
    const name = scheme === 'light' ? 'console-overview' : 'console-overview-dark';
    await camera.take(name, overview, { on: 'desktop', scheme, operator }, async (page) => {
      await page.locator('.uplot canvas').first().waitFor({ timeout: PLOTTED_MS });
    });
  }
  await camera.take('console-overview-phone', overview, { ...PHONE, operator }, async (page) =>
    page.locator('.uplot canvas').first().waitFor({ state: 'attached', timeout: PLOTTED_MS }),
  );
}

async function shown(page: Page, text: string, within = 'main'): Promise<void> {
  await page.locator(within).getByText(text, { exact: true }).first().waitFor();
}
