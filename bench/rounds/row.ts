/** What one round of one contender gave. */
export interface Sample {
  /** In the unit of its table. */
  readonly value: number;
  /** What else was counted meanwhile, by name: for the sizing, and for whoever looks into the results. */
  readonly more?: Readonly<Record<string, number>>;
}

/** One of those that are measured beside each other. */
export interface Contender {
  readonly name: string;
  measure(): Promise<Sample>;
}

/** What a table should show, of the medians of its rounds. */
export interface Target {
  /** As a sentence's end: "at least 0.85 of the bare route". */
  readonly text: string;
  /** `ratio`: subject / against, in each round; `difference`: subject - against; `value`: the subject alone. */
  readonly of: 'ratio' | 'difference' | 'value';
  readonly subject: string;
  readonly against?: string;
  readonly at: 'least' | 'most';
  readonly bound: number;
}

/** That `subject` is at least so many times `against`, round by round. */
export function atLeast(bound: number, subject: string, against: string, text: string): Target {
  return { text, of: 'ratio', subject, against, at: 'least', bound };
}

/** That `subject` is at most so many times `against`, round by round. */
export function atMost(bound: number, subject: string, against: string, text: string): Target {
  return { text, of: 'ratio', subject, against, at: 'most', bound };
}

/** Contenders that are measured in turn, round by round. */
export interface Table {
  readonly id: string;
  readonly title: string;
  /** E.g. `events/s`. */
  readonly unit: string;
  readonly better: 'higher' | 'lower';
  /** Ours first: what the others are set in relation to. */
  readonly contenders: readonly Contender[];
  readonly targets: readonly Target[];
  /** What a reader must know to judge it, in Markdown. */
  readonly notes?: readonly string[];
  /** Where rounds would only repeat themselves. */
  readonly rounds?: number;
  /** How many rounds that are not counted go first. Default 1. */
  readonly warmUp?: number;
}

/** How large a run is. */
export interface Scale {
  readonly rounds: number;
  /** For trying the bench itself out: a tenth of everything, whose figures mean nothing. */
  readonly quick: boolean;
}

/** A part of the bench that can be run by itself. */
export interface Row {
  readonly name: string;
  readonly title: string;
  /** Rounds, where nobody says otherwise. */
  readonly rounds: number;
  /** Starts what it needs, and leaves with `ending` how to be rid of it. */
  open(scale: Scale, ending: AsyncDisposableStack): Promise<Table[]>;
}

/** `count`, or a tenth of it where the run is a quick one. */
export function sized(scale: Scale, count: number): number {
  return scale.quick ? Math.ceil(count / 10) : count;
}
