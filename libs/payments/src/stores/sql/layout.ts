/** What the tables of the databases have in different columns. */
export interface StoreLayout {
  /** SQL: the events, with the columns `raw` and `headers`. */
  readonly bodies: string;
  /** SQL: whether an event `e` is a tombstone. */
  readonly pruned: string;
  /** SQL: sets the columns of an event that becomes a tombstone. */
  readonly tombstone: string;
  /** The tables that have a row for each event with a body, in the column `event`. */
  readonly bodyTables: readonly string[];
  /**
   * The pending and dead deliveries, each kind with an index that begins with the handler. The first are those that wait for
   * their turn. They are skipped first, so that each delivery that still waits has the delivery that it waits for.
   */
  readonly queues: readonly {
    readonly state: 'pending' | 'dead';
    readonly index: string;
    /** SQL: whether a delivery `d` is of this kind. */
    readonly condition: string;
    /** SQL: whether a delivery `d` is in the index. Default: {@link condition}. */
    readonly indexed?: string;
  }[];
  /** SQL: sets the columns of a delivery that is not pending or dead any more. */
  readonly unqueued: string;
}
