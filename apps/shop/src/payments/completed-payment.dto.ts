import { IsNotEmpty, IsOptional, IsPositive, IsString } from 'class-validator';

/**
 * The fields of `data` in a `transaction.completed` event that the shop uses. The payments module validates each event
 * before it calls the handler.
 */
export class CompletedPaymentDto {
  @IsString()
  @IsNotEmpty()
  transactionId!: string;

  @IsPositive()
  amount!: number;

  /** Reference of the order. Payments that the shop did not request may have none. */
  @IsOptional()
  @IsString()
  externalReference?: string | null;
}
