// The page's beginning: log in if the address has a ticket, then show it.

import { mount } from 'svelte';

import '../chat/theme.css';
import './page.css';
import App from './App.svelte';
import { logIn } from './login';

const target = document.getElementById('app');
if (target) void logIn().then((problem) => mount(App, { target, props: { problem } }));
