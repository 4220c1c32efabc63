// Where conversations are kept: IndexedDB, or memory where the browser has none (a private window).
import type { Conversation, Message } from './types';

export interface Database {
  readonly isLasting: boolean;
  conversations(): Promise<Conversation[]>;
  messages(conversation: string): Promise<Message[]>;
  save(conversations: Conversation[], messages: Message[]): Promise<void>;
  remove(conversation: string): Promise<void>;
  clear(): Promise<void>;
  // The conversations with a message that holds `text`, compared without case.
  search(text: string): Promise<Set<string>>;
}

const NAME = 'godwit';
const VERSION = 1;

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function completion(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(NAME, VERSION);
  request.onupgradeneeded = () => {
    request.result.createObjectStore('conversations', { keyPath: 'id' });
    request.result.createObjectStore('messages', { keyPath: 'id' }).createIndex('conversation', 'conversation');
  };
  return result(request);
}

class BrowserDatabase implements Database {
  readonly isLasting = true;
  constructor(private readonly db: IDBDatabase) {
    db.onversionchange = () => db.close(); // another tab brings a newer page
  }

  conversations(): Promise<Conversation[]> {
    return result(this.db.transaction('conversations').objectStore('conversations').getAll());
  }

  messages(conversation: string): Promise<Message[]> {
    return result(this.db.transaction('messages').objectStore('messages').index('conversation').getAll(conversation));
  }

  save(conversations: Conversation[], messages: Message[]): Promise<void> {
    const transaction = this.db.transaction(['conversations', 'messages'], 'readwrite');
    for (const conversation of conversations) transaction.objectStore('conversations').put(conversation);
    for (const message of messages) transaction.objectStore('messages').put(message);
    return completion(transaction);
  }

  async remove(conversation: string): Promise<void> {
    const transaction = this.db.transaction(['conversations', 'messages'], 'readwrite');
    transaction.objectStore('conversations').delete(conversation);
    const messages = transaction.objectStore('messages');
    for (const key of await result(messages.index('conversation').getAllKeys(conversation))) messages.delete(key);
    return completion(transaction);
  }

  clear(): Promise<void> {
    const transaction = this.db.transaction(['conversations', 'messages'], 'readwrite');
    transaction.objectStore('conversations').clear();
    transaction.objectStore('messages').clear();
    return completion(transaction);
  }

  search(text: string): Promise<Set<string>> {
    const wanted = text.toLowerCase();
    const found = new Set<string>();
    const request = this.db.transaction('messages').objectStore('messages').openCursor();
    return new Promise((resolve, reject) => {
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor) return resolve(found);
        const message = cursor.value as Message;
        if (message.content.toLowerCase().includes(wanted)) found.add(message.conversation);
        cursor.continue();
      };
    });
  }
}

class MemoryDatabase implements Database {
  readonly isLasting = false;
  private readonly kept = new Map<string, Conversation>();
  private readonly texts = new Map<string, Message>();

  async conversations(): Promise<Conversation[]> {
    return [...this.kept.values()];
  }
  async messages(conversation: string): Promise<Message[]> {
    return [...this.texts.values()].filter((message) => message.conversation === conversation);
  }
  async save(conversations: Conversation[], messages: Message[]): Promise<void> {
    for (const conversation of conversations) this.kept.set(conversation.id, conversation);
    for (const message of messages) this.texts.set(message.id, message);
  }
  async remove(conversation: string): Promise<void> {
    this.kept.delete(conversation);
    for (const message of await this.messages(conversation)) this.texts.delete(message.id);
  }
  async clear(): Promise<void> {
    this.kept.clear();
    this.texts.clear();
  }
  async search(text: string): Promise<Set<string>> {
    const wanted = text.toLowerCase();
    const hits = [...this.texts.values()].filter((message) => message.content.toLowerCase().includes(wanted));
    return new Set(hits.map((message) => message.conversation));
  }
}

export async function openDatabase(): Promise<Database> {
  try {
    return new BrowserDatabase(await open());
  } catch {
    return new MemoryDatabase();
  }
}
