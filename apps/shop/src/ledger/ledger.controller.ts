import { Controller, Get } from '@nestjs/common';
import { Ledger } from './ledger.js';
import type { LedgerEntry } from './ledger.js';

/** `GET /ledger`. */
@Controller('ledger')
export class LedgerController {
  constructor(private readonly ledger: Ledger) {}

  @Get()
  entries(): Promise<LedgerEntry[]> {
    return this.ledger.entries();
  }
}
