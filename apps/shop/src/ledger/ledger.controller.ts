import { Type } from 'class-transformer';
import { IsInt, IsOptional, Matches, Max, Min } from 'class-validator';
import { Controller, Get, Header, Query, Sse } from '@nestjs/common';
import type { MessageEvent } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { ShopDatabase } from '../database/shop-database.js';
import { EventStreamsService } from '../live/event-streams.service.js';
import type { LedgerEntry, LedgerPage } from './ledger-entry.js';
import { LiveLedgerService } from './live-ledger.service.js';

const LIMIT = { message: 'limit must be a whole number from 1 to 200' };

/** Query of `GET /api/ledger/page`, such as `?limit=50&before=120`. */
export class LedgerPageDto {
  /** The value of the field `next` of another page, to read older entries. Default: the newest entries. */
  @IsOptional()
  @Matches(/^\d{1,18}$/, { message: 'before must be the value of the field next of another page' })
  before?: string;

  /** Number of entries, 1 to 200. Default 20. */
  @Type(() => Number)
  @Min(1, LIMIT)
  @Max(200, LIMIT)
  @IsInt(LIMIT)
  limit: number = 20;
}

/** The API of the ledger: `GET /api/ledger`, its pages and its events. */
@Controller('api/ledger')
export class LedgerController {
  constructor(
    private readonly database: ShopDatabase,
    private readonly live: LiveLedgerService,
    private readonly streams: EventStreamsService,
  ) {}

  /** Returns all entries, oldest first. */
  @Get()
  entries(): Promise<LedgerEntry[]> {
    return this.database.ledgerEntries();
  }

  /** Returns a page of entries, newest first. */
  @Get('page')
  @Header('cache-control', 'no-store')
  page(@Query() { before, limit }: LedgerPageDto): Promise<LedgerPage> {
    return this.database.ledgerPage(limit, before);
  }

  /** Sends server-sent events named `state`: the current totals, and the new totals after each recorded payment. */
  @Sse('events')
  events(): Observable<MessageEvent> {
    return this.streams.open(this.live.watchTotals());
  }
}
