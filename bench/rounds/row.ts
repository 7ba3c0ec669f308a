/** The measurement of one contender in one round. */
export interface Sample {
  /** The measured value, in the unit of the table. */
  readonly value: number;
  /** Other measurements of the round, by name, for the sizing and the column of the processor time. */
  readonly more?: Readonly<Record<string, number>>;
}

/** A package or program that a table compares with others. */
export interface Contender {
  readonly name: string;
  measure(): Promise<Sample>;
}

/** An expected result of a table. */
export interface Target {
  /** The expectation in words, such as "at least 0.85 of the bare route". */
  readonly text: string;
  /**
   * The value of each round that is compared with `bound`. `ratio`: `subject` divided by `against`. `difference`:
   * `subject` minus `against`. `value`: `subject`.
   */
  readonly of: 'ratio' | 'difference' | 'value';
  readonly subject: string;
  readonly against?: string;
  readonly at: 'least' | 'most';
  readonly bound: number;
}

/** A target: in the median of the rounds, `subject` is at least `bound` times `against`. */
export function atLeast(bound: number, subject: string, against: string, text: string): Target {
  return { text, of: 'ratio', subject, against, at: 'least', bound };
}

/** A target: in the median of the rounds, `subject` is at most `bound` times `against`. */
export function atMost(bound: number, subject: string, against: string, text: string): Target {
  return { text, of: 'ratio', subject, against, at: 'most', bound };
}

/** A table of contenders. In each round, the contenders are measured one after the other. */
export interface Table {
  readonly title: string;
  /** The unit of the values, for example `events/s`. */
  readonly unit: string;
  readonly better: 'higher' | 'lower';
  /** The first contender is nestjs-payments. The ratios of the other contenders refer to the first contender. */
  readonly contenders: readonly Contender[];
  readonly targets: readonly Target[];
  /** Notes for the reader, in Markdown. */
  readonly notes?: readonly string[];
  /** Number of rounds of this table. Default: the number of rounds of the run. */
  readonly rounds?: number;
  /** Number of warm-up rounds, which do not count. Default 1. */
  readonly warmUp?: number;
}

/** The size of a run. */
export interface Scale {
  readonly rounds: number;
  /** Divides all counts by ten, to test the bench itself. The figures of a quick run have no meaning. */
  readonly quick: boolean;
}

/** A named benchmark that can be run on its own, and that has its own section on the page. */
export interface Row {
  readonly name: string;
  readonly title: string;
  /** Default number of rounds. */
  readonly rounds: number;
  /** Starts the processes and servers of the row, adds their disposal to `ending`, and returns the row's tables. */
  open(scale: Scale, ending: AsyncDisposableStack): Promise<Table[]>;
}

/** Returns `count`, or a tenth of `count` in a quick run. */
export function sized(scale: Scale, count: number): number {
  return scale.quick ? Math.ceil(count / 10) : count;
}
