import { render } from 'preact';
import { openStore } from './state/conversations';
import { refreshModels } from './state/server';
import { App } from './ui/app';

render(<App />, document.getElementById('app')!);
void openStore().then(refreshModels);
