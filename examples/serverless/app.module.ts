import { Module } from '@nestjs/common';
import { PaymentsModule } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { Orders, OrdersController } from './orders.js';

@Module({
  imports: [
    PaymentsModule.forRoot({
      baseUrl: process.env.PAYMENTS_BASE_URL!,
      clientId: process.env.PAYMENTS_CLIENT_ID!,
      clientSecret: process.env.PAYMENTS_CLIENT_SECRET!,
      webhookSecret: process.env.PAYMENTS_WEBHOOK_SECRET!,
      inbox: postgresInbox({ connectionString: process.env.DATABASE_URL!, poolSize: 3 }),
      worker: { background: false },
    }),
  ],
  providers: [Orders],
  controllers: [OrdersController],
})
export class AppModule {}
