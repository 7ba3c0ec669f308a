import { expect, it } from '@jest/globals';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import type { PostgresTransaction } from 'nestjs-payments/postgres';

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
