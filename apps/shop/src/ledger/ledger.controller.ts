import { Type } from 'class-transformer';
import { IsInt, IsOptional, Matches, Max, Min } from 'class-validator';
import { Controller, Get, Header, Query } from '@nestjs/common';
import { ShopDatabase } from '../database/shop-database.js';
import type { LedgerEntry, LedgerPage, LedgerTotals } from './ledger-entry.js';

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

/** The API of the ledger: `GET /api/ledger`, its pages and its totals. */
@Controller('api/ledger')
export class LedgerController {
  constructor(private readonly database: ShopDatabase) {}

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

  /** Returns the sums of all entries. */
  @Get('totals')
  @Header('cache-control', 'no-store')
  totals(): Promise<LedgerTotals> {
    return this.database.ledgerTotals();
  }
}
