import { expect, it } from '@jest/globals';
import { OnPaymentEvent, PaymentsError } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import type { PostgresTransaction } from 'nestjs-payments/postgres';
import { AT_ONCE, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { book, onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { eventually } from '../../support/time/waiting.js';

/** The error code with which the promise rejects. */
async function codeOf(work: Promise<unknown>): Promise<string> {
  const reason: unknown = await work.then(
    () => 'it resolved',
    (error: unknown) => error,
  );
  return reason instanceof PaymentsError ? reason.code : String(reason);
}

onEachDurableInbox((durable) => {
  it('IN-21 a commit whose function throws has no effect, and the delivery runs again', async () => {
    const data = await durable.data();
    const seen: string[][] = [];
    const handle: Handle = async (event, context) => {
      seen.push(await data.effects());
      await context.commit((tx) => {
        const written = data.write(tx, event.id);
        const fail = () => {
          if (context.attempt < 3) throw new RangeError('no such account');
        };
        return written instanceof Promise ? written.then(fail) : fail();
      });
    };
    await using app = await startOn(data, { book: handle });
    expect(await post(app, 'paid')).toBe(200);
    await eventually(async () => expect(await states(app, 'paid')).toEqual({ book: 'done 3' }));
    expect(seen).toEqual([[], [], []]);
    expect(await data.effects()).toEqual(['paid']);
    expect(app.log.matching(/no such account/)).toHaveLength(2);
  });

  it('IN-13 a commit of an attempt that lost its lease is rejected, and the effect of the next attempt happens once', async () => {
    const data = await durable.data();
    const rejections: string[] = [];
    let runs = 0;
    const handle: Handle = async (event, context) => {
      runs += 1;
      if (runs > 1) {
        await book(data, context, event.id);
        return;
      }
      await data.removeWorkers();
      await new Promise<void>((resolve) => {
        context.signal.addEventListener('abort', () => resolve());
      });
      rejections.push(await codeOf(book(data, context, 'stale')));
    };
    await using app = await startOn(
      data,
      { book: handle },
      { worker: { ...AT_ONCE, leaseMs: 1000 } },
    );
    await post(app, 'paid');
    // The attempt that lost its lease is not counted.
    await eventually(async () => expect(await states(app, 'paid')).toEqual({ book: 'done 1' }));
    expect(runs).toBe(2);
    // The commit of the first attempt may end after the second attempt.
    await eventually(() => expect(rejections).toEqual(['lease_lost']));
    expect(await data.effects()).toEqual(['paid']);
    expect(
      app.log.matching(/sent no heartbeat for 1000 ms, so it lost the leases of 1 deliveries/),
    ).toHaveLength(1);
  });
});

// Type errors of handlers that commit. `tsc -b test` checks that every line after `@ts-expect-error` is an error, and no
// other line.
class Orders {
  @OnPaymentEvent('transaction.completed')
  async sqlite(
    { id }: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext<SqliteTransaction>,
  ): Promise<void> {
    const changes: number | bigint = await context.commit(
      (tx) => tx.prepare('INSERT INTO ledger VALUES (?)').run(id).changes,
    );
    expect(changes).toBe(1);
    // @ts-expect-error A SQLite transaction is not a client of pg.
    await context.commit((tx) => tx.query('SELECT 1'));
    // @ts-expect-error The work of a SQLite transaction is synchronous.
    await context.commit(async (tx) => tx.exec('SELECT 1'));
    // @ts-expect-error The work of a SQLite transaction returns no promise.
    await context.commit(() => Promise.resolve(1));
    // @ts-expect-error The work of a SQLite transaction must not return a promise in any case.
    await context.commit(() => (id === '' ? Promise.resolve(1) : 1));
    const nothing: void = await context.commit((tx) => tx.exec('SELECT 1'));
    expect(nothing).toBeUndefined();
    // @ts-expect-error commit() resolves with what the work returns: a number.
    const text: string = await context.commit(() => 1);
    expect(text).toBe(1);
  }

  @OnPaymentEvent('transaction.completed')
  async postgres(
    { id }: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext<PostgresTransaction>,
  ): Promise<void> {
    const { rowCount } = await context.commit((tx) =>
      tx.query('INSERT INTO ledger VALUES ($1)', [id]),
    );
    expect(rowCount).toBe(1);
    const one: number = await context.commit(async () => 1);
    expect(one).toBe(1);
    // @ts-expect-error A client of pg is not a SQLite transaction.
    await context.commit((tx) => tx.prepare('SELECT 1'));
    // @ts-expect-error commit() needs the work as its argument.
    await context.commit();
  }

  @OnPaymentEvent('*')
  async unknown(_event: PaymentEvent, context: PaymentEventContext): Promise<void> {
    // @ts-expect-error Without a type argument, the transaction has an unknown type.
    await context.commit((tx) => tx.query('SELECT 1'));
  }

  // @ts-expect-error The second parameter of a handler must be its context.
  @OnPaymentEvent('*')
  async wrong(_event: PaymentEvent, _tx: SqliteTransaction): Promise<void> {}
}

// The compiler checks the expected errors above. This test only keeps the class in use.
it('the context type of a handler determines the transaction type of commit()', () => {
  expect(Object.getOwnPropertyNames(Orders.prototype)).toContain('postgres');
});
