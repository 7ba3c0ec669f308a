import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsISO8601,
  IsObject,
  IsPositive,
  Matches,
  Max,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import type { EventFilter, EventState, ListQuery } from 'nestjs-payments';

/*
 * Requests of the console. Each message completes the sentence `"field" must be …`. All rules of a field have the same
 * message, which names all allowed values.
 */

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

/** A date, or a time with a zone. `IsISO8601` alone also allows times without one, and weeks. */
const DATE_OR_TIME =
  /^[12]\d{3}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** The field may be missing. `IsOptional` would also allow `null`. */
const Optional = () => ValidateIf((_, value) => value !== undefined);

function Text(max: number) {
  const message = `a text of 1 to ${max} characters, none of them a control character`;
  return Matches(new RegExp(`^\\P{Cc}{1,${max}}$`, 'u'), { message });
}

function CompanyId() {
  const message = 'the id of a company: 1 to 100 letters, digits, or any of _ . ~ -';
  return Matches(/^[\w.~-]{1,100}$/, { message });
}

function Choice(choices: readonly string[]) {
  return IsIn(choices, { message: `one of ${choices.join(', ')}` });
}

function WholeNumber(min: number, max: number) {
  const message = `a whole number from ${min} to ${max}`;
  return applyDecorators(IsInt({ message }), Min(min, { message }), Max(max, { message }));
}

function DateOrTime() {
  const message = 'a time such as 2026-11-20T08:00:00Z, or a date';
  return applyDecorators(
    Matches(DATE_OR_TIME, { message }),
    IsISO8601({ strict: true }, { message }),
  );
}

/** Minutes of activity to show. */
export class OverviewQueryDto {
  @WholeNumber(1, 1440)
  @Type(() => Number)
  minutes = 60;
}

/** Identifies one event. */
export class EventIdDto {
  @CompanyId()
  company!: string;

  @Text(255)
  id!: string;
}

/** Selects events by their properties. */
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
  @Text(255)
  search?: string;

  @Optional()
  @DateOrTime()
  from?: string;

  @Optional()
  @DateOrTime()
  to?: string;

  toFilter(): EventFilter {
    const { company, eventType, handler, state, search } = this;
    const [from, to] = [this.from, this.to].map((time) => time && new Date(time));
    const filter = { company, eventType, handler, state, search, from, to };
    return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
  }
}

/** A page of the list of events. */
export class EventListQueryDto extends EventFilterDto {
  @Choice(ORDERS)
  order: (typeof ORDERS)[number] = 'newest';

  @WholeNumber(1, 200)
  @Type(() => Number)
  limit = 50;

  @Optional()
  @Matches(/^[\d.-]{1,64}$/, { message: '"next" of the previous page' })
  after?: string;

  toQuery(): ListQuery {
    const { order, limit, after = null } = this;
    return { ...this.toFilter(), order, limit, after };
  }
}

const EVENTS = { message: 'a list of 1 to 1,000 events, each with "company" and "id"' };
const BOOLEAN = { message: 'true or false' };
const RATE = { message: 'a number above 0, at most 1000' };

/** Selects the deliveries of an action: either `events` or `filter`. */
export class SkipDto {
  @Optional()
  @IsArray(EVENTS)
  @ArrayMinSize(1, EVENTS)
  @ArrayMaxSize(1000, EVENTS)
  @IsObject({ each: true, ...EVENTS })
  @ValidateNested({ each: true })
  @Type(() => EventIdDto)
  events?: EventIdDto[];

  @Optional()
  @IsObject({ message: `a JSON object with: ${Object.keys(new EventFilterDto()).join(', ')}` })
  @ValidateNested()
  @Type(() => EventFilterDto)
  filter?: EventFilterDto;

  /** Only deliveries to this handler. */
  @Optional()
  @Text(200)
  handler?: string;

  /** Count the deliveries only. */
  @IsBoolean(BOOLEAN)
  dryRun = false;
}

/** Selects the deliveries to redrive. */
export class RedriveDto extends SkipDto {
  /** Redrive deliveries that are done, too. */
  @IsBoolean(BOOLEAN)
  force = false;

  /** How many events become due per second. Only for a `filter`. */
  @Optional()
  @IsPositive(RATE)
  @Max(1000, RATE)
  ratePerSecond?: number;
}

/** The handler to pause, resume or forget. `*` pauses or resumes all handlers. */
export class HandlerDto {
  @Matches(/^\P{Cc}{1,200}$/u, { message: 'the name of a handler, or * for all' })
  handler!: string;
}
