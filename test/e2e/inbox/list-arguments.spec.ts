import { expect, it } from '@jest/globals';
import { PaymentExpectations, PaymentInbox } from 'nestjs-payments';
import { ExpectingApplication, onEachInbox } from '../../support/inbox/expecting-application.js';

const BAD_CURSORS: readonly unknown[] = ['', '7/7', '1e3', 'x', 7, {}, ' 7', '99999999999999999'];
const BAD_TIMES: readonly unknown[] = [new Date('x'), '2026-01-31', 1_767_225_600_000, null];
const CURSOR = /^"after" must be the "next" of the previous page .* or null for the first page\.$/;

onEachInbox((data) => {
  it('list() rejects an invalid cursor with a TypeError that names the cause and the fix', async () => {
    await using app = await ExpectingApplication.start(await data());
    const inbox = app.app.get(PaymentInbox);
    const expectations = app.app.get(PaymentExpectations);
    for (const n of [1, 2]) {
      await app.webhook(`t-${n}`);
      await expectations.expect({ reference: `order-${n}` });
    }
    const own = (await inbox.list({ limit: 1 })).next!;
    for (const list of [inbox, expectations]) {
      // Cursors of other lists and of other stores are invalid, too.
      const { next } = await list.list({ limit: 1 });
      const others = ['7', '7.7', '7-7'].filter((other) => formOf(other) !== formOf(next!));
      for (const cursor of [...BAD_CURSORS, ...others]) {
        await expectTypeError(() => list.list({ after: cursor as string }), CURSOR);
      }
    }
    expect((await inbox.list({ after: own })).events).toHaveLength(1);
  });

  it('list(), redrive(), skip() and sweep() reject an invalid time with a TypeError that names the cause and the fix', async () => {
    await using app = await ExpectingApplication.start(await data());
    const inbox = app.app.get(PaymentInbox);
    const expectations = app.app.get(PaymentExpectations);
    const now = new Date();
    for (const time of BAD_TIMES) {
      for (const name of ['from', 'to']) {
        const query = { from: now, to: now, [name]: time };
        for (const call of [
          () => inbox.list(query),
          () => inbox.redrive(query),
          () => inbox.skip(query),
          () => expectations.list(query),
          () => expectations.sweep(query),
        ]) {
          await expectTypeError(call, new RegExp(`^"${name}" must be a valid Date; `));
        }
      }
    }
  });
});

async function expectTypeError(call: () => Promise<unknown>, message: RegExp): Promise<void> {
  await expect(call).rejects.toThrow(TypeError);
  await expect(call).rejects.toThrow(message);
}

/** Returns the cursor without its digits. */
function formOf(cursor: string): string {
  return cursor.replaceAll(/\d+/g, '');
}
