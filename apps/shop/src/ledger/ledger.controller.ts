import { Controller, Get, Header, Query, Sse } from '@nestjs/common';
import type { MessageEvent } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { ShopDatabase } from '../database/shop-database.js';
import { EventStreamsService } from '../live/event-streams.service.js';
import type { LedgerEntry, LedgerPage } from './ledger-entry.js';
import { LedgerPageDto } from './ledger-page.dto.js';
import { LiveLedgerService } from './live-ledger.service.js';

/** The API of the ledger: `GET /api/ledger`, its pages and its events. */
@Controller('api/ledger')
export class LedgerController {
  constructor(
    private readonly database: ShopDatabase,
    private readonly live: LiveLedgerService,
    private readonly streams: EventStreamsService,
  ) {}

  /** All entries, oldest first. */
  @Get()
  entries(): Promise<LedgerEntry[]> {
    return this.database.ledgerEntries();
  }

  /** A page of entries, newest first. */
  @Get('page')
  @Header('cache-control', 'no-store')
  page(@Query() { before, limit }: LedgerPageDto): Promise<LedgerPage> {
    return this.database.ledgerPage(limit, before);
  }

  /** Server-sent events named `state`: the totals now, and again after each recorded payment. */
  @Sse('events')
  events(): Observable<MessageEvent> {
    return this.streams.open(this.live.watchTotals());
  }
}
