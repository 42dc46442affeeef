// @ts-check
/**
 * The same for Node. Node 18 has Web Crypto, but not under its global name; later versions do not need this.
 *
 * @module
 */

import { webcrypto } from 'node:crypto';

if (!globalThis.crypto) Object.defineProperty(globalThis, 'crypto', { value: webcrypto, configurable: true });

export * from './ichido.js';
