import { Type } from 'class-transformer';
import { IsInt, IsOptional, Matches, Max, Min } from 'class-validator';

const LIMIT = { message: 'limit must be a whole number from 1 to 200' };

/** Which part of the ledger is asked for. */
export class LedgerQuery {
  /** The `next` of another page. Default: the newest. */
  @IsOptional()
  @Matches(/^\d{1,18}$/, { message: 'before must be the next of another page' })
  before?: string;

  /** How many entries, 1 to 200. Default 20. */
  @Type(() => Number)
  @Min(1, LIMIT)
  @Max(200, LIMIT)
  @IsInt(LIMIT)
  limit: number = 20;
}
