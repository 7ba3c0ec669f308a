import { Type } from 'class-transformer';
import { IsBoolean, IsObject, IsPositive, Max, ValidateNested } from 'class-validator';
import { SETUP_CHECKS } from 'nestjs-payments';
import type {
  EventState,
  ExpectationFilter,
  ExpectationState,
  ListQuery,
  SetupCheck,
} from 'nestjs-payments';
import {
  AnyText,
  Choice,
  CompanyId,
  Cursor,
  DateOrTime,
  Optional,
  SelectionOf,
  Text,
  WholeNumber,
} from './field-validators.js';

const STATES: readonly EventState[] = [
  'pending',
  'running',
  'done',
  'dead',
  'skipped',
  'unhandled',
  'stale',
];
const ORDERS = ['newest', 'oldest'] as const;
const EXPECTATION_STATES: readonly ExpectationState[] = [
  'waiting',
  'fulfilled',
  'overdue',
  'cancelled',
];

/** Query of the overview, with the number of minutes of activity to show. */
export class OverviewQueryDto {
  @WholeNumber(1, 1440)
  @Type(() => Number)
  minutes = 60;
}

export class AuditQueryDto {
  @Choice(['all', 'actions', 'views'])
  show: 'all' | 'actions' | 'views' = 'all';

  /** Name of the operator, in upper or lower case; `unknown` selects entries without a name. */
  @Optional()
  @AnyText()
  who?: string;

  @Optional()
  @DateOrTime()
  from?: string;

  @Optional()
  @DateOrTime()
  to?: string;

  @WholeNumber(1, 1000)
  @Type(() => Number)
  limit = 100;
}

export class EventIdDto {
  @CompanyId()
  company!: string;

  @Text(255)
  id!: string;
}

export class PaymentDto {
  @CompanyId()
  company!: string;

  /** The transaction id or the reference. */
  @AnyText()
  payment!: string;
}

export class EventFilterDto {
  @Optional()
  @CompanyId()
  company?: string;

  @Optional()
  @Text(255)
  eventType?: string;

  @Optional()
  @Text(200)
  handler?: string;

  @Optional()
  @Choice(STATES)
  state?: EventState;

  @Optional()
  @AnyText()
  search?: string;

  /** Selects only deliveries whose last error is in the same group as this error. */
  @Optional()
  @AnyText()
  error?: string;

  @Optional()
  @DateOrTime()
  from?: string;

  @Optional()
  @DateOrTime()
  to?: string;

  toFilter(): Omit<ListQuery, 'order' | 'limit' | 'after'> {
    const { company, eventType, handler, state, search, error } = this;
    const [from, to] = [this.from, this.to].map((time) => time && new Date(time));
    const filter = { company, eventType, handler, state, search, error, from, to };
    return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
  }
}

export class EventListQueryDto extends EventFilterDto {
  @Choice(ORDERS)
  order: (typeof ORDERS)[number] = 'newest';

  @WholeNumber(1, 200)
  @Type(() => Number)
  limit = 50;

  @Optional()
  @Cursor()
  after?: string;

  toQuery(): ListQuery {
    const { order, limit, after = null } = this;
    return { ...this.toFilter(), order, limit, after };
  }
}

export class ExpectationListQueryDto {
  @Optional()
  @CompanyId()
  company?: string;

  @Optional()
  @Choice(EXPECTATION_STATES)
  state?: ExpectationState;

  @Optional()
  @Choice(['unpaid', 'unknown'])
  overdue?: 'unpaid' | 'unknown';

  @Optional()
  @Choice(['webhook', 'poll'])
  fulfilledBy?: 'webhook' | 'poll';

  @Optional()
  @Choice(['true'])
  contradictory?: 'true';

  @Optional()
  @Text(255)
  search?: string;

  @WholeNumber(1, 200)
  @Type(() => Number)
  limit = 50;

  @Optional()
  @Cursor()
  after?: string;

  toQuery(): ExpectationFilter & { limit: number; after: string | null } {
    const { limit, after = null, contradictory, ...filter } = this;
    const given = Object.entries({ ...filter, contradictory: contradictory && true });
    return { ...Object.fromEntries(given.filter(([, it]) => it !== undefined)), limit, after };
  }
}

const BOOLEAN = { message: 'true or false' };
const RATE = { message: 'a number above 0, at most 1000' };

/** Selects the deliveries to which an action applies, by either `events` or `filter`. */
export class SkipDto {
  @Optional()
  @SelectionOf(EventIdDto, 'events, each with "company" and "id"')
  events?: EventIdDto[];

  @Optional()
  @IsObject({ message: `a JSON object with: ${Object.keys(new EventFilterDto()).join(', ')}` })
  @ValidateNested()
  @Type(() => EventFilterDto)
  filter?: EventFilterDto;

  @Optional()
  @Text(200)
  handler?: string;

  /** Whether to only count the deliveries and change nothing. */
  @IsBoolean(BOOLEAN)
  dryRun = false;
}

export class RedriveDto extends SkipDto {
  /** Whether to redrive done deliveries, too. */
  @IsBoolean(BOOLEAN)
  force = false;

  /** Number of events per second whose deliveries the redrive makes due. Allowed only with `filter`. */
  @Optional()
  @IsPositive(RATE)
  @Max(1000, RATE)
  ratePerSecond?: number;

  /** Whether to redrive only the newest matching event, at once. Allowed only with `filter`. */
  @IsBoolean(BOOLEAN)
  newestOnly = false;
}

/** The redrive to stop. */
export class StopDto {
  @Text(100)
  id!: string;
}

/** A group of failures, with the values that the page showed to the operator. */
export class FailureGroupDto {
  @Text(200)
  handler!: string;

  @Choice(['dead', 'retrying'])
  state!: 'dead' | 'retrying';

  @AnyText()
  error!: string;

  @WholeNumber(1, 10_000)
  count!: number;

  @DateOrTime()
  newestAt!: string;
}

/** A group of failures, and the note with which the operator acknowledges it. */
export class AcknowledgeDto extends FailureGroupDto {
  @Text(500)
  note!: string;
}

/** The handler to pause, resume or forget. `*` pauses or resumes all handlers. */
export class HandlerDto {
  @Text(200, 'the name of a handler, or * for all')
  handler!: string;
}

/** The handler to pause, the reason, and the time at which the pause ends by itself. */
export class PauseDto extends HandlerDto {
  @Optional()
  @Text(500)
  reason?: string;

  @Optional()
  @DateOrTime()
  until?: string;
}

export class SetupDto {
  @Choice(SETUP_CHECKS)
  check!: SetupCheck['name'];

  /** The company to check. */
  @Optional()
  @CompanyId()
  company?: string;
}

export class ExpectationIdDto {
  @CompanyId()
  company!: string;

  @Text(200)
  reference!: string;
}

export class AskDto {
  @SelectionOf(ExpectationIdDto, 'expectations, each with "company" and "reference"')
  expectations!: ExpectationIdDto[];
}

/** The expectations to close, and the reason. */
export class CloseDto extends AskDto {
  @Text(500)
  note!: string;
}
